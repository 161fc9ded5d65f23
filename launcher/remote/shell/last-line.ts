/** The last line that the remote side said, to tell a broken link by. */
export function lastLine(stderr: string): string | null {
  return stderr.trim().split('\n').at(-1)?.trim() || null;
}
