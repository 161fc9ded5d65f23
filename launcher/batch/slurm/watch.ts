/** Looks at Slurm until all tasks have ended: often while something happens, seldom where nothing does, as every look costs Slurm's daemon time. */
import { FailureError } from '../../model/failure-error.ts';
import { messageOf } from '../../../control/message-of.ts';
import type { SlurmBatch } from './slurm-batch.ts';

interface WatchFacts {
  readonly batch: SlurmBatch;
  /** How many events there were. */
  news(this: void): number;
  say(this: void, text: string): void;
  /** Resolves after this time, or once the watch is over. */
  pause(this: void, milliseconds: number): Promise<void>;
  isLeft(this: void): boolean;
}

const SHORTEST_MS = 1000;
const LONGEST_MS = 30_000;
const GROWTH = 1.2;

export async function watchBatch({ batch, news, say, pause, isLeft }: WatchFacts): Promise<void> {
  let pauseMs = SHORTEST_MS;
  let isSilent = false;
  for (;;) {
    const before = news();
    try {
      await batch.look();
      if (isSilent) say('Slurm answers again');
      isSilent = false;
    } catch (error) {
      if (!(error instanceof FailureError) || error.failure.type !== 'system') throw error;
      if (!isSilent) say(`${messageOf(error)}; ncclrun goes on asking`);
      isSilent = true;
    }
    if (batch.isOver || isLeft()) return;
    pauseMs = news() === before ? Math.min(LONGEST_MS, pauseMs * GROWTH) : SHORTEST_MS;
    await pause(pauseMs);
    if (isLeft()) return;
  }
}
