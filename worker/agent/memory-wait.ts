/**
 * Ranks that were ended give their GPUs' memory back, a moment later than they are gone. Before ranks start again their GPUs are to have as much
 * free as they had at first.
 */
import type { FreeGpuMemory } from '../../control/messages/gpu.ts';
import { freeText, holdersText } from '../../control/gpu-memory-text.ts';

const ASK_MS = 200;
/** A shorter wait is not reported. */
const REPORT_AFTER_MS = 1000;
const LIMIT_MS = 30_000;
/** What contexts of others and the driver's own bookkeeping may take meanwhile. */
const TOLERANCE = 0.02;

interface MemoryWaitOptions {
  /** What was free at first; may never be known. */
  readonly before: Promise<readonly FreeGpuMemory[]>;
  /** Asks for the same GPUs. The answer may never come: a broken GPU may keep NVML for ever. */
  readonly now: () => Promise<readonly FreeGpuMemory[]>;
  /** Returns false once the ranks need no memory any more. */
  readonly isWanted: () => boolean;
  readonly report: (message: string) => void;
  readonly limitMs?: number;
}

/** Resolves when the GPUs have as much free memory as before, or at the limit. */
export async function memoryIsBack({
  before,
  now,
  isWanted,
  report,
  limitMs = LIMIT_MS,
}: MemoryWaitOptions): Promise<void> {
  /** Null until NVML has answered. */
  let lacking: readonly FreeGpuMemory[] | null = null;
  let isOver = false;
  const over = Promise.withResolvers<void>();
  const reportIfWanted = (message: string): void => {
    if (isWanted()) report(message);
  };
  const reminder = setTimeout(() => reportIfWanted(`the ranks wait for memory: ${lackText(lacking)}`), REPORT_AFTER_MS);
  const limit = setTimeout(() => {
    reportIfWanted(`the ranks start although ${lackText(lacking)}, ${limitMs / 1000} s after those before had ended`);
    over.resolve();
  }, limitMs);
  const ask = async (): Promise<void> => {
    lacking = lackingOf(await now(), await before);
    if (lacking.length === 0 || !isWanted()) over.resolve();
    else if (!isOver) setTimeout(() => void ask(), ASK_MS);
  };
  void ask();
  await over.promise;
  isOver = true;
  clearTimeout(reminder);
  clearTimeout(limit);
}

function lackingOf(now: readonly FreeGpuMemory[], before: readonly FreeGpuMemory[]): FreeGpuMemory[] {
  return now.filter(({ gpu, free, total }) => {
    const first = before.find((one) => one.gpu === gpu);
    return first !== undefined && free < first.free - total * TOLERANCE;
  });
}

/** `GPU 3 has 20 of 140 GiB free (held by pid 4711 python, user bob)`. */
function lackText(lacking: readonly FreeGpuMemory[] | null): string {
  if (lacking === null) return 'NVML has not reported the free memory';
  const texts = lacking.map((one) => `GPU ${one.gpu} has ${freeText(one)} free (held by ${holdersText(one.holders)})`);
  return texts.join(', ');
}
