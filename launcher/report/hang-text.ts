import type { Hang } from '../model/hang.ts';

/** Of the ranks that wait, so many say for whom. */
const MAX_WAITS = 4;

/** The ranks to blame come first. */
export function hangText({ communicator, operation, call, late, waits, waiting, seconds }: Hang): string {
  const who = waiting.includes(',') || waiting.includes('-') ? `ranks ${waiting} wait` : `rank ${waiting} waits`;
  const blame = late.length > 0 ? late.join('; ') : 'no rank is behind, and none makes progress';
  const where = `${who} in operation ${operation} (${call}) of communicator ${communicator}, without progress for ${seconds} s`;
  if (late.length > 0 || waits.length === 0) return `${blame}: ${where}`;
  const more = waits.length > MAX_WAITS ? `; and ${waits.length - MAX_WAITS} more` : '';
  return `${blame}: ${where}: ${waits.slice(0, MAX_WAITS).join('; ')}${more}`;
}
