/** Many rounds on a few clusters at once. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { type Draw, HOSTS } from './draw.ts';
import { type RoundResult, playRound } from './round.ts';
import { messageOf } from '../../control/message-of.ts';

export interface Pace {
  /** Rounds at a time, each on a cluster of its own. */
  readonly jobs: number;
  /** From a fault to the end of a job that is to end, in milliseconds. */
  readonly endMs: number;
}

/** Plays all rounds. A cluster that one has failed on is not used again. */
export async function playAll(
  draws: readonly Draw[],
  { jobs, endMs }: Pace,
  tell: (result: RoundResult) => void,
): Promise<readonly RoundResult[]> {
  const directory = await mkdtemp(join(repository, 'build/test-faults-'));
  const results: RoundResult[] = [];
  const waiting = [...draws];
  const lane = async (program: string): Promise<void> => {
    while (waiting.length > 0) {
      await using cluster = await Cluster.start(HOSTS);
      for (let whole = true; whole; ) {
        const drawn = waiting.shift();
        if (drawn === undefined) return;
        const result = await playRound(cluster, program, drawn, endMs).catch((error: unknown) => broken(drawn, error));
        results.push(result);
        tell(result);
        whole = result.wrongs.length === 0;
      }
    }
  };
  try {
    const program = await compileWithEngine('test/rig/programs/stream.c', directory);
    await Promise.all(Array.from({ length: Math.min(jobs, draws.length) }, () => lane(program)));
    return results;
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** A round that could not be played to its end. */
function broken(draw: Draw, error: unknown): RoundResult {
  return { draw, wrongs: [messageOf(error)], endMs: 0, outcome: null };
}
