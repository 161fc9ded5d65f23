/** The clock, and whether somebody keeps it right. */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';

/** Asks timedatectl, which needs no rights; chrony and ntpd tell the kernel, and it that. */
export async function readClock(root: string, limitMs: number): Promise<HostReadings['clock']> {
  const hasMark = listDirectory(root, 'run/systemd/timesync').includes('synchronized');
  const answer = hasMark ? null : await runTool('timedatectl', ['show', '-p', 'NTPSynchronized', '--value'], limitMs);
  const said = answer !== null && 'output' in answer ? answer.output.trim() : '';
  return { now: Date.now(), synchronised: hasMark ? true : said === '' ? null : said === 'yes' };
}
