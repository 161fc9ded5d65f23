/** GPUs' memory for people. */
import type { FreeGpuMemory, MemoryHolder } from './messages/gpu.ts';

const GIB = 2 ** 30;
/** Named one by one. */
const MAX_HOLDERS = 2;

/** `20 of 140 GiB`. */
export function freeText({ free, total }: Pick<FreeGpuMemory, 'free' | 'total'>): string {
  return `${gibibytes(free)} of ${gibibytes(total)} GiB`;
}

/** `pid 4711 python, user bob; pid 4712`. */
export function holdersText(holders: readonly MemoryHolder[]): string {
  if (holders.length === 0) return 'no process that the driver names';
  const shown = holders.slice(0, MAX_HOLDERS).map(({ pid, program, user }) => {
    return `pid ${pid}${program === null ? '' : ` ${program}`}${user === null ? '' : `, user ${user}`}`;
  });
  const more = holders.length - shown.length;
  return `${shown.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** One digit after the point where there is one before it. */
function gibibytes(bytes: number): number {
  const amount = bytes / GIB;
  return amount < 10 ? Math.round(amount * 10) / 10 : Math.round(amount);
}
