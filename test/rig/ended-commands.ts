/** What the commands of a test said, which its report shows if it fails: an assertion alone shows one word of it. */
import type { Outcome } from './command.ts';

/** Of each stream its end. */
const MAX_CHARACTERS = 4000;
const ended: string[] = [];

export function noteEnded(argv: readonly string[], { status, stdout, stderr, milliseconds }: Outcome): void {
  const took = `${Math.round(milliseconds)} ms`;
  ended.push(`${argv.join(' ')}: status ${status}, ${took}\nstdout:${endOf(stdout)}stderr:${endOf(stderr)}`);
}

function endOf(text: string): string {
  return text === '' ? ' nothing\n' : `\n${text.slice(-MAX_CHARACTERS)}`;
}

/** All since the last time. */
export function takeEnded(): string[] {
  return ended.splice(0);
}
