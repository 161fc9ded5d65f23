/** Tools of the system that may hang: a file system that does not answer, a driver in trouble. */
import { execa } from 'execa';
import { messageOf } from '../../control/message-of.ts';

type ToolAnswer = { readonly output: string } | { readonly problem: string };

/**
 * Its stdout. A tool that does not end in time is killed, and left behind where even that does not end it (uninterruptible sleep): nobody waits
 * for it.
 */
export async function runTool(file: string, argv: readonly string[], limitMs: number): Promise<ToolAnswer> {
  const child = execa(file, argv, { stdin: 'ignore', stderr: 'ignore', reject: false, cleanup: false, buffer: true });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs);
  });
  try {
    const ended = await Promise.race([child, late]);
    if (ended === null) {
      child.kill('SIGKILL');
      child.unref();
      return { problem: `${file} has not ended within ${limitMs / 1000} s` };
    }
    if (ended.exitCode === 0) return { output: ended.stdout };
    return {
      problem: `${file} ${ended.exitCode === undefined ? `cannot be run` : `ended with status ${ended.exitCode}`}`,
    };
  } catch (error) {
    return { problem: messageOf(error) };
  } finally {
    clearTimeout(timer);
  }
}
