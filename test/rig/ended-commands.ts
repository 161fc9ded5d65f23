/** What the commands of a test said, which its report shows if it fails: an assertion alone shows one word of it. */
import type { Outcome } from './command.ts';

/** Of each stream its end. */
const MAX_CHARACTERS = 4000;
const ended: string[] = [];
const running = new Set<AsyncDisposable>();

export function noteStarted(command: AsyncDisposable): void {
  running.add(command);
}

export function noteEnded(
  command: AsyncDisposable,
  argv: readonly string[],
  { status, stdout, stderr, milliseconds }: Outcome,
): void {
  running.delete(command);
  const took = `${Math.round(milliseconds)} ms`;
  ended.push(`${argv.join(' ')}: status ${status}, ${took}\nstdout:${endOf(stdout)}stderr:${endOf(stderr)}`);
}

function endOf(text: string): string {
  return text === '' ? ' nothing\n' : `\n${text.slice(-MAX_CHARACTERS)}`;
}

/** What has ended since the last time. Commands that still run are no longer ours. */
export function takeEnded(): string[] {
  running.clear();
  return ended.splice(0);
}

/** A test that took too long has left its commands behind. */
export async function endRunning(): Promise<void> {
  await Promise.all([...running].map((command) => command[Symbol.asyncDispose]()));
}
