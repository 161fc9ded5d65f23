import type { Hang } from '../model/hang.ts';

export function hangText({ communicator, operation, call, late, waiting, seconds }: Hang): string {
  const who = waiting.includes(',') || waiting.includes('-') ? `ranks ${waiting} wait` : `rank ${waiting} waits`;
  const blame = late.length > 0 ? late.join('; ') : 'all its ranks are inside, and none gets on';
  return `no progress for ${seconds} s in operation ${operation} (${call}) of communicator ${communicator}, in which ${who}: ${blame}`;
}
