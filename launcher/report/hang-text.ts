import type { Hang } from '../model/hang.ts';

/** Of the ranks that wait, so many say for whom. */
const MAX_WAITS = 4;

export function hangText({ communicator, operation, call, late, waits, waiting, seconds }: Hang): string {
  const who = waiting.includes(',') || waiting.includes('-') ? `ranks ${waiting} wait` : `rank ${waiting} waits`;
  const more = waits.length > MAX_WAITS ? `; and ${waits.length - MAX_WAITS} more` : '';
  const inside = waits.length > 0 ? `: ${waits.slice(0, MAX_WAITS).join('; ')}${more}` : '';
  const blame = late.length > 0 ? late.join('; ') : `all its ranks are inside, and none makes progress${inside}`;
  return `no progress for ${seconds} s in operation ${operation} (${call}) of communicator ${communicator}, in which ${who}: ${blame}`;
}
