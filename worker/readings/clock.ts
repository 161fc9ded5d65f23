/** The clock, and whether somebody keeps it right. */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';

const TRIES = 5;

/** Milliseconds by which the clock is ahead of the monotonic one. */
interface ClockDistance {
  readonly ms: number;
  /** Of which it may be wrong. */
  readonly withinMs: number;
}

/** Asks timedatectl, which needs no rights; chrony and ntpd tell the kernel, and it that. `before`: when the host's watch began. */
export async function readClock(root: string, limitMs: number, before: ClockDistance): Promise<HostReadings['clock']> {
  const hasMark = listDirectory(root, 'run/systemd/timesync').includes('synchronized');
  const answer = hasMark ? null : await runTool('timedatectl', ['show', '-p', 'NTPSynchronized', '--value'], limitMs);
  const said = answer !== null && 'output' in answer ? answer.output.trim() : '';
  const after = clockDistance();
  return {
    now: Date.now(),
    synchronised: hasMark ? true : said === '' ? null : said === 'yes',
    monotonic: monotonicMs(),
    steppedMs: stepBetween(before, after),
  };
}

/** 0: no more than the readings themselves may be wrong. */
export function stepBetween(before: ClockDistance, after: ClockDistance): number {
  const step = after.ms - before.ms;
  return Math.abs(step) <= before.withinMs + after.withinMs ? 0 : step;
}

/** The one of several readings that took the shortest time: another process may have the processor in between. */
export function clockDistance(wall = Date.now, monotonic = monotonicMs): ClockDistance {
  const readings = Array.from({ length: TRIES }, () => {
    const [first, time, last] = [monotonic(), wall(), monotonic()];
    // The clock is read in whole milliseconds.
    return { ms: time + 0.5 - (first + last) / 2, withinMs: 0.5 + (last - first) / 2 };
  });
  return readings.reduce((best, one) => (one.withinMs < best.withinMs ? one : best));
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
