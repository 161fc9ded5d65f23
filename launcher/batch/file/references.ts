/** Checks every `${{ ... }}` of a job when the file is read, so that none is wrong when the job starts. */
import type { ArraySpec } from '../model/spec.ts';
import { nearest } from '../../text/nearest.ts';
import { referencesIn } from './fill-in.ts';
import { mapOf, scalarsBelow, type Mapping, type Span } from './item.ts';
import { checkVariables } from './variables.ts';
import type { Source } from './source.ts';

const filledKeys = ['command', 'commands', 'env', 'output'];

interface Known {
  readonly array: ArraySpec | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly passed: readonly string[];
}

/** Throws a FailureError (usage) at the first reference that has no value, or stands where none is filled in. */
export function checkReferences(job: Mapping, known: Known, source: Source): void {
  const names = [
    'job.name',
    'batch.name',
    ...(known.array === null
      ? []
      : ['array.index', ...Object.keys(known.array.tasks[0]?.values ?? {}).map((word) => `array.${word}`)]),
    ...Object.keys(known.environment).map((name) => `env.${name}`),
  ];
  const isKnown = new Set(names);
  for (const { key, written, value } of job.entries) {
    const isFilled = filledKeys.includes(key);
    for (const scalar of scalarsBelow(value)) {
      for (const { text, name } of referencesIn(scalar.text)) {
        const at = source.within(scalar, text);
        if (!isFilled) {
          const remedy = 'only command, env and output are filled in';
          throw source.mistake(at, `"${written}" has a ${text} in it`, remedy);
        }
        if (name === null)
          throw source.mistake(at, '"${{" has no "}}"', 'write ${{ array.lr }}; for the text itself $${{');
        if (!isKnown.has(name)) throw unknown(name, at, names, known, source);
      }
    }
  }
  const env = mapOf(job, 'env');
  if (env !== null) checkVariables(env, source);
}

function unknown(name: string, at: Span, names: readonly string[], known: Known, source: Source): Error {
  if (!/^[a-z]+\.\w+$/iu.test(name)) {
    const remedy = `no code is run here: write one of ${names.join(', ')}; for the text itself $\${{`;
    return source.mistake(at, `"${name}" is no name of a value`, remedy);
  }
  const [scope = '', word = ''] = name.split('.');
  if (scope === 'env' && known.passed.includes(word)) {
    const remedy = `write $${word} in a command that a shell reads`;
    return source.mistake(at, `the value of ${word} is known when the job starts`, remedy);
  }
  if (scope === 'array' && known.array === null) {
    return source.mistake(at, `"${name}" has no value: the job is no array`, 'write array: { lr: [0.1, 0.03] }');
  }
  const guess = nearest(name, names);
  const remedy = guess === null ? `known: ${names.join(', ')}` : `did you mean "${guess}"?`;
  return source.mistake(at, `"${name}" has no value`, remedy);
}
