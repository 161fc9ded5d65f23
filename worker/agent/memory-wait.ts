/**
 * Ranks that were ended give their GPUs' memory back, a moment later than they are gone. Before ranks start again their GPUs are to have as much
 * free as they had at first.
 */
import { monotonicMs } from '../../control/clock.ts';
import type { GpuMemory } from '../../control/messages/gpu.ts';
import { freeText, holdersText } from '../../control/gpu-memory-text.ts';

const ASK_MS = 200;
/** A wait that is shorter is not told of. */
const TELL_MS = 1000;
const LIMIT_MS = 30_000;
/** What contexts of others and the driver's own bookkeeping may take meanwhile. */
const TOLERANCE = 0.02;

export interface MemoryWaitOptions {
  /** Asks for the same GPUs. */
  readonly now: () => Promise<readonly GpuMemory[]>;
  /** False: nobody waits for it any more. */
  readonly isWanted: () => boolean;
  readonly tell: (message: string) => void;
  readonly limitMs?: number;
}

/** Resolves when the GPUs have as much free as `before`, or the limit is over. */
export async function memoryIsBack(before: readonly GpuMemory[], options: MemoryWaitOptions): Promise<void> {
  const { now, isWanted, tell, limitMs = LIMIT_MS } = options;
  const began = monotonicMs();
  for (let told = false; isWanted(); ) {
    const lacking = lackingOf(await now(), before);
    const waited = monotonicMs() - began;
    if (lacking.length === 0 || !isWanted()) return;
    if (waited >= limitMs) {
      tell(
        `the ranks start although ${lackText(lacking)}, ${Math.round(waited / 1000)} s after those before had ended`,
      );
      return;
    }
    if (!told && waited >= TELL_MS) {
      tell(`the ranks wait for memory: ${lackText(lacking)}`);
      told = true;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, ASK_MS);
    });
  }
}

function lackingOf(now: readonly GpuMemory[], before: readonly GpuMemory[]): GpuMemory[] {
  return now.filter(({ gpu, free, total }) => {
    const first = before.find((one) => one.gpu === gpu);
    return first !== undefined && free < first.free - total * TOLERANCE;
  });
}

/** `GPU 3 has 20 of 140 GiB free (held by pid 4711 python, user bob)`. */
function lackText(lacking: readonly GpuMemory[]): string {
  const texts = lacking.map((one) => `GPU ${one.gpu} has ${freeText(one)} free (held by ${holdersText(one.holders)})`);
  return texts.join(', ');
}
