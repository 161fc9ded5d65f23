/** Hosts of a task, of what Slurm writes: `node[01-04],gpu7`. */
import { parseHostWord } from '../../../allocation/grammar/host-name.ts';
import { Reading } from '../../../allocation/grammar/reading.ts';
import { splitOutsideBrackets } from '../../../allocation/grammar/tokenize.ts';
import { FailureError } from '../../../model/failure-error.ts';
import type { Demand } from '../../model/spec.ts';

interface Host {
  readonly name: string;
  /** Null: Slurm has dealt the ranks, and does not say how. */
  readonly ranks: number | null;
}

export function hostsOf(nodes: string, demand: Pick<Demand, 'ranks' | 'ranksPerNode'> | undefined): Host[] {
  const names = namesIn(nodes);
  const ranks = demand?.ranksPerNode ?? (names.length === 1 ? (demand?.ranks ?? null) : null);
  return names.map((name) => ({ name, ranks }));
}

function namesIn(nodes: string): readonly string[] {
  if (nodes === '') return [];
  const reading = new Reading();
  const line = { source: 'squeue', line: 1, text: nodes };
  try {
    return splitOutsideBrackets({ text: nodes, offset: 0 }, ',').flatMap(
      (token) => parseHostWord(token, line, reading).names,
    );
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    return [nodes]; // a list that squeue has cut off is shown as it is
  }
}
