/** Last line of the remote side's stderr, which describes a broken link. */
export function lastLine(stderr: string): string | null {
  return stderr.trim().split('\n').at(-1)?.trim() || null;
}
