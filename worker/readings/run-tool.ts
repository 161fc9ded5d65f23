/** Tools of the system that may hang: a file system that does not answer, a driver in trouble. */
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { messageOf } from '../../control/message-of.ts';
import { readText } from '../topology/system-files.ts';

type ToolAnswer = { readonly output: string } | { readonly problem: string };

/** A tool that still wants to run after its time gets so much of it at most: the host may be busy. */
const TIMES_IF_RUNNING = 4;

/**
 * Its stdout. A tool that does not end in time is killed, and left behind where even that does not end it (uninterruptible sleep): nobody waits
 * for it. On a busy host, one that waits for a processor is given more time than one that waits for anything else.
 */
export async function runTool(file: string, argv: readonly string[], limitMs: number): Promise<ToolAnswer> {
  const child = execa(file, argv, { stdin: 'ignore', stderr: 'ignore', reject: false, cleanup: false, buffer: true });
  const over = new AbortController();
  try {
    const ended = await Promise.race([child, late(() => child.pid, limitMs, over.signal)]);
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
    over.abort();
  }
}

async function late(pid: () => number | undefined, limitMs: number, signal: AbortSignal): Promise<null> {
  for (let time = 1; ; time++) {
    try {
      await sleep(limitMs, undefined, { signal });
    } catch {
      return null; // the tool has ended
    }
    if (time >= TIMES_IF_RUNNING || !wantsToRun(pid())) return null;
  }
}

/** `7 (stat) R 1 …` */
function wantsToRun(pid: number | undefined): boolean {
  return pid !== undefined && /\) R [^)]*$/u.test(readText('/', `proc/${pid}/stat`));
}
