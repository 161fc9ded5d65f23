/** Which process is meant, beyond its number: numbers are used again, and after a restart of the host all of them are. */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

export const processIdentity = v.object({
  pid: whole,
  /** Clock ticks since the host started, as text: field 22 of /proc/PID/stat. */
  startTime: v.pipe(v.string(), v.regex(/^[0-9]+$/u)),
  bootId: v.string(),
});
export type ProcessIdentity = v.InferOutput<typeof processIdentity>;

export function ownIdentity(): ProcessIdentity {
  const startTime = startTimeOf(process.pid);
  if (startTime === null) throw new Error('/proc does not show this process');
  return { pid: process.pid, startTime, bootId: bootId() };
}

/** Whether that very process runs still, on this host. One that has ended and was not waited for does not run. */
export function isAlive({ pid, startTime, bootId: boot }: ProcessIdentity): boolean {
  return boot === bootId() && startTimeOf(pid) === startTime;
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

/** Null: there is no such process, or it is a zombie. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before may have blanks and brackets
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}
