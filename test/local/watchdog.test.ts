/** The watchdog beside an agent that starts: what it ends, what it leaves alone, and what it tells the launcher. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FrameDecoder } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { StagingMessage } from '../../launcher/remote/staging/protocol.ts';
import { alive, withEnvironment } from '../rig/processes.ts';
import { until } from '../rig/until.ts';

const WATCHDOG = join(import.meta.dirname, '../../build/ncclrun-watchdog');
/** Longer than a program may stand still. */
const TIMEOUT_MS = 20_000;

interface Started {
  readonly child: ChildProcess;
  /** StagingWords, in their order. */
  readonly words: number[];
  /** The watchdog is there. */
  readonly watched: () => boolean;
  readonly ended: Promise<{
    readonly status: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly stderr: string;
  }>;
}

/** A program in Node, with the watchdog beside it. */
function start(program: string, mode = 'launched'): Started {
  const mark = `NCCLRUN_TEST_MARK=${randomUUID()}`;
  const env = { ...process.env, NCCLRUN_TEST_MARK: mark.split('=')[1] };
  const child = spawn(WATCHDOG, [mode, process.execPath, '-e', program], { stdio: 'pipe', env });
  const words: number[] = [];
  let stderr = '';
  const decoder = new FrameDecoder(({ kind, flags }) => words.push(kind === FrameKind.staging ? flags : -1));
  child.stdout.on('data', (bytes: Buffer) => decoder.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  const ended = once(child, 'close').then(() => ({ status: child.exitCode, signal: child.signalCode, stderr }));
  const watched = (): boolean => withEnvironment(mark).some(({ pid }) => pid !== child.pid);
  return { child, words, watched, ended };
}

describe('the watchdog', () => {
  it(
    'the watchdog ends a stopped program and informs the launcher',
    async () => {
      const { child, words, watched, ended } = start('setTimeout(() => {}, 1e6)');
      await until('the watchdog is there', watched);
      child.kill('SIGSTOP');
      const { signal, stderr } = await ended;
      expect(signal).toBe('SIGVTALRM');
      expect(stderr).toMatch(new RegExp(`process ${child.pid} was stopped for 5 s .*and was ended`));
      expect(words.at(-1)).toBe(StagingMessage.hung);
      expect(words.filter((word) => word === StagingMessage.alive).length).toBeGreaterThan(2);
    },
    TIMEOUT_MS,
  );

  it.each([
    ['loops forever', 'for (;;);', /used 3 s of processor time/],
    ['waits for input that never arrives', 'process.stdin.resume()', /waited for 5 s without reading anything/],
  ])(
    'the watchdog ends a program that %s',
    async (_, program, error) => {
      const { signal, stderr } = await start(program).ended;
      expect(signal).toBe('SIGVTALRM');
      expect(stderr).toMatch(error);
    },
    2 * TIMEOUT_MS,
  );

  it(
    'the watchdog writes nothing to the stdout of an invited agent',
    async () => {
      const { words, ended } = start('setTimeout(() => {}, 1e6)', 'invited');
      expect((await ended).signal).toBe('SIGVTALRM');
      expect(words).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'the watchdog spares a program that makes slow progress',
    async () => {
      const { child, ended } = start('process.stdin.on("data", () => {}).on("end", () => process.exit(7))');
      const bytes = setInterval(() => child.stdin?.write('x'), 1000);
      setTimeout(() => (clearInterval(bytes), child.stdin?.end()), 8000);
      expect(await ended).toEqual({ status: 7, signal: null, stderr: '' });
    },
    TIMEOUT_MS,
  );

  it(
    'the watchdog stays silent after the program took the token, and still ends it',
    async () => {
      const { child, words, ended } = start('fs.readSync(3, Buffer.alloc(1)); setTimeout(() => {}, 1e6)');
      const { signal, stderr } = await ended;
      expect(signal).toBe('SIGVTALRM');
      expect(words).not.toContain(StagingMessage.hung);
      expect(stderr).toContain(`process ${child.pid}`);
    },
    TIMEOUT_MS,
  );

  it.each([
    ['the program writes to its pipe', 'fs.writeSync(4, ".")'],
    ['the program closes its pipe', 'fs.closeSync(4)'],
  ])('the watchdog exits when %s', async (_, action) => {
    const { child, watched, ended } = start(`process.stdin.once("data", () => ${action})`);
    await until('the watchdog is there', watched);
    child.stdin?.write('x');
    await until('the watchdog is gone', () => !watched());
    expect(alive(child.pid ?? 0)).toBe(true);
    child.stdin?.end();
    expect(await ended).toEqual({ status: 0, signal: null, stderr: '' });
  });

  it('the watchdog exits with the program', async () => {
    const { watched, ended } = start('process.exit(3)');
    expect(await ended).toEqual({ status: 3, signal: null, stderr: '' });
    await until('the watchdog is gone', () => !watched());
  });

  it('the watchdog reports why the program cannot be started', async () => {
    const child = spawn(WATCHDOG, ['launched', '/nonexistent/node'], { stdio: ['ignore', 'ignore', 'pipe'] });
    const output: Buffer[] = [];
    child.stderr.on('data', (bytes: Buffer) => output.push(bytes));
    await once(child, 'close');
    expect(child.exitCode).toBe(127);
    expect(Buffer.concat(output).toString()).toContain('cannot start /nonexistent/node: No such file or directory');
  });
});
