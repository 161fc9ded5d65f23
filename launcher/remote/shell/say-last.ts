/** The last line that the remote side said, to tell a broken link by. */
export function sayLast(stderr: string): string | null {
  return stderr.trim().split('\n').at(-1)?.trim() || null;
}
