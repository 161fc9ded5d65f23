/** What we say when the user wants the job to end: what happens now, and what the next ^C does. */

/** The first ^C. `graceSeconds` as in --grace. */
export function interruptText(graceSeconds: number): string {
  return `interrupted; the ranks got SIGINT. ^C again: SIGTERM, and SIGKILL ${graceSeconds} s later; a third time: leave at once`;
}

/** The second ^C, SIGTERM or SIGHUP. */
export function terminateText(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', graceSeconds: number): string {
  const again = signal === 'SIGINT' ? '; ^C again: leave at once' : '';
  return `got ${signal}; the ranks got SIGTERM, SIGKILL follows in ${graceSeconds} s${again}`;
}

export const leaveText = 'left at once; each host ends what is left of the job there';
