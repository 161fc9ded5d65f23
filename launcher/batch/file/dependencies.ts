/** What a job waits for: names, a map of names and conditions, or the text of sbatch's --dependency. */
import type { Dependency } from '../model/spec.ts';
import { itemOf, scalarsOf, type Item, type Scalar, type Span } from './item.ts';
import type { JobSource } from './job-source.ts';
import { isName } from './schema-parts.ts';
import { meant, type Source } from './source.ts';

/** A dependency that knows where the file names its job. */
export interface Mention extends Dependency {
  readonly item: Span;
  /** The name as written in it. */
  readonly word: string;
}

/** Found only where it is needed: a text may have many names. */
export function placeOfMention({ item, word }: Mention, source: Source): Span {
  return source.within(item, word);
}

type Kind = Pick<Dependency, 'condition' | 'each'>;

const ok: Kind = { condition: 'ok', each: false };

const kinds = new Map<string, Kind>([
  ['ok', ok],
  ['any', { condition: 'any', each: false }],
  ['notok', { condition: 'notok', each: false }],
  ['start', { condition: 'start', each: false }],
  ['each', { condition: 'ok', each: true }],
  ['afterok', ok],
  ['afterany', { condition: 'any', each: false }],
  ['afternotok', { condition: 'notok', each: false }],
  ['after', { condition: 'start', each: false }],
  ['aftercorr', { condition: 'ok', each: true }],
]);

/** Words of sbatch that stand before names. */
const slurmWords = [...kinds.keys()].filter((word) => word.startsWith('after'));

/** Throws a FailureError (usage) for what names no job; whether there is such a job is not known yet. */
export function readMentions({ map, source }: JobSource): Mention[] {
  const item = itemOf(map, 'after');
  const mentions = item === null ? [] : mentionsIn(item, source);
  const seen = new Set<string>();
  for (const mention of mentions) {
    const { job } = mention;
    if (!isName(job)) {
      const remedy = 'write names of jobs, as in after: [prep, train]';
      throw source.mistake(
        placeOfMention(mention, source),
        job === '' ? 'the name of a job is missing' : `"${job}" is no name of a job`,
        remedy,
      );
    }
    if (seen.has(job))
      throw source.mistake(
        placeOfMention(mention, source),
        `"${job}" appears twice`,
        'leave one of them: a job has one condition',
      );
    seen.add(job);
  }
  return mentions;
}

function mentionsIn(item: Item, source: Source): Mention[] {
  if (item.type !== 'map') return scalarsOf(item).flatMap((scalar) => mentionsInText(scalar, source));
  return item.entries.map(({ key, at, value }) => ({
    job: key,
    item: at,
    word: key,
    ...(kinds.get(value.type === 'scalar' ? value.text : '') ?? ok),
  }));
}

/** `prep`, `prep,train`, `afterok:a:b,afterany:c` */
function mentionsInText(scalar: Scalar, source: Source): Mention[] {
  const question = source.within(scalar, '?');
  if (scalar.text.includes('?')) {
    const message = 'with "?" one of the jobs would be enough';
    throw source.mistake(question, message, 'write a comma: a job waits for all that it names');
  }
  return scalar.text.split(',').flatMap((part) => {
    const [word = '', ...names] = part.trim().split(':');
    if (names.length === 0 && word !== 'singleton') return [{ job: word, item: scalar, word, ...ok }];
    const kind = slurmWords.includes(word) ? kinds.get(word) : undefined;
    if (kind === undefined) {
      const message = `"${word}" is no condition`;
      throw source.mistake(source.within(scalar, word), message, meant(word, slurmWords));
    }
    return names.map((name) => mentionOf(name, kind, scalar, source));
  });
}

function mentionOf(name: string, kind: Kind, scalar: Scalar, source: Source): Mention {
  const [job = '', minutes] = name.split('+');
  if (minutes === undefined) return { job, item: scalar, word: name, ...kind };
  const message = `"+${minutes}" asks for a delay after the start of a job`;
  throw source.mistake(source.within(scalar, name), message, `write ${job} alone, and sleep in the command`);
}
