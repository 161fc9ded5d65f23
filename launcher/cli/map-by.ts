/** --map-by as typed → how ranks are dealt out. */
import type { MapBy } from '../model/types.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

const objects = ['node', 'numa', 'gpu'] as const;
const policies = ['slot', 'node', 'numa', 'gpu', 'seq'] as const;

interface ParsedMapBy {
  readonly mapBy: MapBy;
  /** Open MPI's modifier: `slot:OVERSUBSCRIBE`. */
  readonly oversubscribe: boolean;
}

const known = 'known: slot, node, numa, gpu, seq, ppr:N:node, ppr:N:numa, ppr:N:gpu';

/** What others call something that we have too, or nearly. */
const elsewhere: Readonly<Record<string, string>> = {
  socket: 'numa',
  package: 'numa',
  l3cache: 'numa',
  core: 'slot, with --bind-to core',
  hwthread: 'slot, with --bind-to core',
  host: 'node',
  device: 'gpu',
};

/** Throws a FailureError (usage). Capitals do not matter, as for mpirun. `source`: where the text comes from. */
export function parseMapBy(text: string, source = '--map-by'): ParsedMapBy {
  const [policy = '', ...rest] = text.toLowerCase().split(':');
  // Open MPI's `:OVERSUBSCRIBE` is the usual policy with a modifier.
  const first = policy === '' && rest.length > 0 ? 'slot' : policy;
  const mapBy = first === 'ppr' ? parsePerResource(rest.splice(0, 2), text, source) : parsePolicy(first, text, source);
  return { mapBy, oversubscribe: parseModifiers(rest, text, source) };
}

function parsePolicy(word: string, text: string, source: string): MapBy {
  const by = policies.find((policy) => policy === word);
  if (by !== undefined) return { by };
  const other = elsewhere[word] ?? nearest(word, policies);
  throw usageError(
    `${source} is "${text}"; "${word}" is not known here`,
    other === null ? known : `did you mean ${other}? ${known}`,
  );
}

function parsePerResource([count = '', object = '']: readonly string[], text: string, source: string): MapBy {
  const per = objects.find((one) => one === object);
  if (/^[1-9][0-9]{0,5}$/u.test(count) && per !== undefined) return { by: 'ppr', count: Number(count), object: per };
  const instead = elsewhere[object];
  throw usageError(
    `${source} is "${text}"; ppr wants a number of ranks and what they are for`,
    `write ppr:N:node, ppr:N:numa or ppr:N:gpu${instead === undefined ? '' : `; for ${object}: ${instead}`}`,
  );
}

function parseModifiers(modifiers: readonly string[], text: string, source: string): boolean {
  let oversubscribe = false;
  for (const modifier of modifiers.flatMap((part) => part.split(','))) {
    if (modifier === 'oversubscribe') oversubscribe = true;
    else if (modifier !== 'nooversubscribe') {
      const remedy = modifier.startsWith('pe=')
        ? 'a rank gets one core with --bind-to core, a NUMA node with --bind-to numa'
        : 'OVERSUBSCRIBE is the one modifier known here';
      throw usageError(`${source} is "${text}"; the modifier "${modifier}" is not supported`, remedy);
    }
  }
  return oversubscribe;
}
