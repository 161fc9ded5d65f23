/** Many rounds on a few clusters at once. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { type Draw, HOSTS } from './draw.ts';
import { type RoundResult, playRound } from './round.ts';
import { messageOf } from '../../control/message-of.ts';

/** Plays all rounds, so many at a time, each on a cluster of its own; one that a round has failed on is not used again. */
export async function playAll(
  draws: readonly Draw[],
  jobs: number,
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
        const result = await playRound(cluster, program, drawn).catch((error: unknown) => broken(drawn, error));
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
