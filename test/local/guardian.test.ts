import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FrameKind, OUTPUT_PARTIAL, STDIN_END } from '../../control/messages/frame.ts';
import { SpawnStep } from '../../control/messages/guardian.ts';
import { decodeCredit, decodeSpawnFailed, encodeLease } from '../../control/messages/payload.ts';
import { alive, processEntry, withEnvironment } from '../rig/processes.ts';
import { GuardianDriver, rankOf, shell } from './guardian-driver.ts';

const { SIGTERM, SIGKILL, SIGUSR1 } = constants.signals;
const { ENOENT, EACCES } = constants.errno;
/** A line that is longer goes out in pieces, so a guardian that has this much credit sends something. */
const LONGEST_LINE_BYTES = 64 * 1024;

/** A value that no other test has: marks the processes of one job in /proc. */
function mark(): { environment: Record<string, string>; survivors: () => number } {
  const value = `guardian-test-${process.pid}-${Math.random()}`;
  return { environment: { MARK: value }, survivors: () => withEnvironment(`MARK=${value}`).length };
}

function commandOf(pid: string): string {
  return processEntry(Number(pid))?.argv[0] ?? '';
}

describe('start of ranks', () => {
  it('the guardian gives each rank its arguments, directory and environment unchanged', async () => {
    await using guardian = new GuardianDriver();
    const script = 'echo "$PWD|$0|$1|$2|$SHARED|$OWN"';
    const rank = {
      ...rankOf(3, 'sh', '-c', script, 'zero', '', '  two \n*'),
      workingDirectory: '/usr',
      environment: { OWN: 'rank', PATH: '/nowhere:/bin' },
    };
    guardian.start([rank], {}, { SHARED: 'all', OWN: 'all' });
    await guardian.allExited(1);
    expect(guardian.output(3)).toBe('/usr|zero||  two \n*|all|rank\n');
    expect(guardian.exit(3)).toMatchObject({ exitCode: 0, signalNumber: null });
    expect(await guardian.end()).toBe(0);
    expect(guardian.frames.at(-1)?.kind).toBe(FrameKind.ended);
  });

  it('the guardian starts each rank in its own session with default signal handling', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([shell(0, 'grep -E "^Sig(Blk|Ign)" /proc/self/status; cut -d" " -f5,6 /proc/self/stat; echo $$')]);
    await guardian.allExited(1);
    const [blocked, ignored, group, pid] = guardian.output(0).split('\n');
    expect(blocked).toMatch(/^SigBlk:\t0+$/);
    expect(ignored).toMatch(/^SigIgn:\t0+$/);
    expect(group).toBe(`${pid} ${pid}`);
  });

  it('a rank inherits no descriptor of the guardian', async () => {
    await using guardian = new GuardianDriver();
    const list = ['/bin/ls', '/proc/self/fd'];
    guardian.start(Array.from({ length: 8 }, (_, rank) => ({ ...rankOf(rank, ...list), stdinPipe: rank === 0 })));
    await guardian.allExited(8);
    // The fourth is the directory that ls reads.
    for (let rank = 0; rank < 8; ++rank) expect(guardian.output(rank)).toBe('0\n1\n2\n3\n');
  });

  it('the guardian sends the unfinished line of an interactive rank', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([
      { ...shell(0, 'printf "name? "; read name; echo "hello $name"'), stdinPipe: true, interactive: true },
      { ...shell(1, 'printf "never "; read name; echo "whole"'), stdinPipe: true },
    ]);
    await guardian.until(() => guardian.output(0) !== '');
    expect(guardian.output(0)).toBe('name? ');
    expect(guardian.output(1)).toBe('');
    for (const rank of [0, 1]) guardian.send(FrameKind.stdin, { subject: rank, payload: Buffer.from('world\n') });
    await guardian.allExited(2);
    expect(guardian.output(0)).toBe('name? hello world\n');
    expect(guardian.output(1)).toBe('never whole\n');
  });

  it('the guardian binds a rank to its CPUs, and the binding step fails for a missing CPU', async () => {
    await using guardian = new GuardianDriver();
    const rank = rankOf(0, 'grep', 'Cpus_allowed_list', '/proc/self/status');
    guardian.start([
      { ...rank, cpus: [0] },
      { ...rank, rank: 1, cpus: [60000] },
    ]);
    await guardian.allExited(2);
    expect(guardian.output(0)).toBe('Cpus_allowed_list:\t0\n');
    const [failed] = guardian.of(FrameKind.spawnFailed, 1);
    expect(decodeSpawnFailed(failed?.payload ?? new Uint8Array())).toEqual({
      errno: constants.errno.EINVAL,
      step: SpawnStep.binding,
    });
  });

  it('the guardian reports the errno and step of each failed start and starts the other ranks', async () => {
    await using guardian = new GuardianDriver();
    const directory = mkdtempSync(join(tmpdir(), 'guardian-'));
    const plain = join(directory, 'plain');
    writeFileSync(plain, 'echo never\n', { mode: 0o644 });
    guardian.start([
      rankOf(0, 'no-such-program'),
      rankOf(1, '/no/such/program'),
      rankOf(2, plain),
      rankOf(3, directory),
      { ...rankOf(4, 'plain'), environment: { PATH: `${directory}:/bin` } },
      { ...rankOf(5, '/bin/true'), workingDirectory: '/no/such/directory' },
      rankOf(6, '/bin/true'),
      rankOf(7, ''),
    ]);
    await guardian.allExited(8);
    const failure = (rank: number) => {
      const [frame] = guardian.of(FrameKind.spawnFailed, rank);
      return frame === undefined ? null : decodeSpawnFailed(frame.payload);
    };
    expect(failure(0)).toEqual({ errno: ENOENT, step: SpawnStep.exec });
    expect(failure(1)).toEqual({ errno: ENOENT, step: SpawnStep.exec });
    expect(failure(2)).toEqual({ errno: EACCES, step: SpawnStep.exec });
    expect(failure(3)).toEqual({ errno: EACCES, step: SpawnStep.exec });
    expect(failure(4)).toEqual({ errno: EACCES, step: SpawnStep.exec });
    expect(failure(5)).toEqual({ errno: ENOENT, step: SpawnStep.directory });
    expect(failure(7)).toEqual({ errno: ENOENT, step: SpawnStep.exec });
    expect(guardian.exit(6)).toMatchObject({ exitCode: 0 });
  });

  it('the guardian runs a script without #! with the shell', async () => {
    await using guardian = new GuardianDriver();
    const script = join(mkdtempSync(join(tmpdir(), 'guardian-')), 'script');
    writeFileSync(script, 'echo "$0 $1"\n', { mode: 0o755 });
    guardian.start([rankOf(0, script, 'argument')]);
    await guardian.allExited(1);
    expect(guardian.output(0)).toBe(`${script} argument\n`);
  });

  it('the guardian starts 32 programs forty times without a hang', async () => {
    for (let turn = 0; turn < 40; ++turn) {
      await using guardian = new GuardianDriver();
      guardian.start(Array.from({ length: 32 }, (_, rank) => rankOf(rank, '/bin/true')));
      await guardian.allExited(32);
      expect(await guardian.end()).toBe(0);
    }
  });
});

describe('output of ranks', () => {
  it('the guardian sends 100000 short lines complete and in order', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([rankOf(0, 'seq', '100000'), shell(1, 'seq 100000 >&2')]);
    await guardian.allExited(2);
    const expected = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('');
    expect(guardian.output(0)).toBe(expected);
    expect(guardian.output(1, 'stderr')).toBe(expected);
    expect(guardian.of(FrameKind.output, 0).some(({ flags }) => (flags & OUTPUT_PARTIAL) !== 0)).toBe(false);
  });

  it('the guardian sends a line of 3 MB in pieces', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([shell(0, 'head -c 3000000 /dev/zero | tr "\\0" x')]);
    await guardian.allExited(1);
    expect(guardian.output(0)).toBe('x'.repeat(3_000_000));
    expect(
      guardian.of(FrameKind.output, 0).filter(({ flags }) => (flags & OUTPUT_PARTIAL) !== 0).length,
    ).toBeGreaterThan(3);
  });

  it('the guardian joins the pieces of a line and sends an unfinished last line', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([shell(0, 'for i in 1 2 3; do printf $i; sleep 0.02; done; echo; printf end')]);
    await guardian.allExited(1);
    expect(guardian.of(FrameKind.output, 0).map(({ payload }) => Buffer.from(payload).toString())).toEqual(
      expect.arrayContaining(['123\n', 'end']),
    );
    await guardian.until(() => guardian.outputEnded(0));
  });

  it('output stops when the credit is used up, and no byte is lost', async () => {
    await using guardian = new GuardianDriver();
    const total = 2_000_000;
    guardian.start([shell(0, `head -c ${total} /dev/zero | tr "\\0" "\\n"; echo done >&2`)], { outputCredit: 100_000 });
    const got = () => guardian.output(0).length;
    await guardian.until(() => got() > 50_000); // it keeps back less than half of the credit
    // A round trip: the guardian has had every chance to send more than it may.
    guardian.send(FrameKind.heartbeat);
    await guardian.until(() => guardian.of(FrameKind.heartbeat).length === 1);
    expect(got()).toBeLessThanOrEqual(100_000);
    expect(guardian.output(0, 'stderr')).toBe('');
    let granted = 100_000;
    while (granted < total + 100_000) {
      guardian.credit(60_000);
      granted += 60_000;
      // What the guardian keeps back is less than its longest line, however much it had at once; stderr has its share.
      const expected = Math.min(granted - LONGEST_LINE_BYTES - 'done\n'.length, total);
      await guardian.until(() => got() >= expected);
      expect(got()).toBeLessThanOrEqual(granted);
    }
    await guardian.allExited(1);
    expect(got()).toBe(total);
    expect(guardian.output(0, 'stderr')).toBe('done\n');
  });

  it('signals to the guardian itself have no effect', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([shell(0, "trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done")]);
    await guardian.until(() => guardian.output(0) === 'ready\n');
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'] as const) guardian.process.kill(signal);
    guardian.signal(SIGTERM, 0);
    await guardian.until(() => guardian.output(0) === 'ready\nasked\n');
    expect(await guardian.end()).toBe(0);
  });

  it('the guardian handles signals, exits and heartbeats while nobody reads the output', async () => {
    await using guardian = new GuardianDriver();
    const silent = [1, 2].map((rank) => rankOf(rank, 'sleep', '1000'));
    guardian.start([rankOf(0, 'yes'), ...silent], { outputCredit: 200_000 });
    await guardian.until(() => guardian.output(0).length > 100_000);
    guardian.signal(SIGTERM, 1);
    await guardian.until(() => guardian.exit(1) !== null);
    expect(guardian.exit(1)).toMatchObject({ signalNumber: SIGTERM });
    // The same with credit, but a socket that nobody reads.
    guardian.pauseReading();
    guardian.credit(2 ** 40);
    guardian.signal(SIGTERM, 2);
    await expect.poll(() => alive(guardian.pid(2))).toBe(false);
    expect(alive(guardian.pid(0))).toBe(true);
    guardian.signal(SIGKILL, 0);
    await expect.poll(() => alive(guardian.pid(0))).toBe(false);
    guardian.resumeReading();
    await guardian.allExited(3);
    expect(guardian.output(0)).toMatch(/^(y\n)+y?$/);
    expect(await guardian.end()).toBe(0);
  });

  it('the guardian reports an exit while a grandchild holds the pipe, and sends its later output', async () => {
    await using guardian = new GuardianDriver();
    const fifo = join(mkdtempSync(join(tmpdir(), 'guardian-')), 'go');
    guardian.start([
      shell(0, `mkfifo ${fifo}; echo mine; (read line < ${fifo}; echo "later $line") & echo half | tr -d "\\n"`),
    ]);
    await guardian.allExited(1);
    expect(guardian.output(0)).toBe('mine\nhalf');
    expect(guardian.outputEnded(0)).toBe(false);
    writeFileSync(fifo, 'word\n');
    await guardian.until(() => guardian.outputEnded(0));
    expect(guardian.output(0)).toBe('mine\nhalflater word\n');
  });
});

describe('input of ranks', () => {
  it('the guardian writes stdin to rank 0 and grants credit for the bytes written', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([{ ...rankOf(0, 'wc', '-c'), stdinPipe: true }, rankOf(1, 'wc', '-c')]);
    const chunk = Buffer.alloc(300_000, 'x');
    for (let i = 0; i < 4; ++i) guardian.send(FrameKind.stdin, { subject: 0, payload: chunk });
    guardian.send(FrameKind.stdin, { subject: 0, flags: STDIN_END });
    await guardian.allExited(2);
    expect(guardian.output(0)).toBe('1200000\n');
    expect(guardian.output(1)).toBe('0\n');
    const credit = guardian.of(FrameKind.stdinCredit, 0).reduce((sum, { payload }) => sum + decodeCredit(payload), 0);
    expect(credit).toBe(1_200_000);
  });

  it('the guardian grants credit for the input of a rank that closed its stdin', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([{ ...shell(0, 'exec <&-; sleep 1000'), stdinPipe: true }]);
    const credited = () =>
      guardian.of(FrameKind.stdinCredit, 0).reduce((sum, { payload }) => sum + decodeCredit(payload), 0);
    for (let i = 1; i <= 8; ++i) {
      guardian.send(FrameKind.stdin, { subject: 0, payload: Buffer.alloc(100_000) });
      await guardian.until(() => credited() === i * 100_000);
    }
    expect(await guardian.end()).toBe(0);
  });
});

describe('end of ranks', () => {
  const hardToKill =
    "trap '' TERM INT HUP; (setsid sleep 1000 &) ; setsid sh -c 'setsid sleep 1000 & sleep 1000' & (sh -c '(sleep 1000 &) ; exit' ) ; echo ready; sleep 1000; sleep 1000";

  it('the guardian kills sessions, double forks and ranks that ignore signals', async () => {
    await using guardian = new GuardianDriver();
    const { environment, survivors } = mark();
    guardian.start(
      [0, 1, 2, 3].map((rank) => shell(rank, hardToKill)),
      {},
      environment,
    );
    await guardian.until(() => [0, 1, 2, 3].every((rank) => guardian.output(rank) === 'ready\n'));
    expect(survivors()).toBeGreaterThanOrEqual(16);
    guardian.signal(SIGTERM);
    expect(await guardian.end()).toBe(0);
    expect(survivors()).toBe(0);
    expect(guardian.exit(2)).toMatchObject({ signalNumber: SIGKILL });
    expect(guardian.frames.at(-1)?.kind).toBe(FrameKind.ended);
  });

  it('no process remains when the agent disappears', async () => {
    const guardian = new GuardianDriver();
    const { environment, survivors } = mark();
    guardian.start(
      [0, 1, 2].map((rank) => shell(rank, hardToKill)),
      {},
      environment,
    );
    await guardian.until(() => [0, 1, 2].every((rank) => guardian.output(rank) === 'ready\n'));
    guardian.vanish();
    expect(await guardian.closed()).toBe(1);
    expect(survivors()).toBe(0);
  });

  it('ranks die with a killed warden, and the guardian does not report their exits', async () => {
    const guardian = new GuardianDriver();
    guardian.start([rankOf(0, 'sleep', '1000'), rankOf(1, 'sleep', '1000')]);
    await guardian.until(() => guardian.of(FrameKind.spawned).length === 2);
    const pids = [guardian.pid(0), guardian.pid(1)];
    guardian.process.kill('SIGKILL');
    expect(await guardian.closed()).toBe('SIGKILL');
    expect(guardian.of(FrameKind.exited)).toEqual([]);
    expect(guardian.of(FrameKind.ended)).toEqual([]);
    await expect.poll(() => pids.filter(alive)).toEqual([]);
  });

  it('the guardian ends the ranks when the lease expires, and not while the lease is suspended', async () => {
    const guardian = new GuardianDriver();
    const { environment, survivors } = mark();
    guardian.start([shell(0, hardToKill)], { leaseMs: 300 }, environment);
    for (let i = 0; i < 8; ++i) {
      guardian.send(FrameKind.heartbeat);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    guardian.send(FrameKind.lease, { payload: encodeLease(0) });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(guardian.outcome).toBe(null);
    expect(survivors()).toBeGreaterThan(0);
    const start = Date.now();
    guardian.send(FrameKind.lease, { payload: encodeLease(300) });
    expect(await guardian.closed()).toBe(3);
    expect(Date.now() - start).toBeGreaterThanOrEqual(295);
    expect(guardian.stderr).toContain('no word from the agent for');
    expect(guardian.frames.at(-1)?.kind).toBe(FrameKind.ended);
    expect(survivors()).toBe(0);
  });

  it('the guardian signals the process group of one rank or of all ranks', async () => {
    await using guardian = new GuardianDriver();
    const script = 'trap "echo got" USR1; echo ready; while :; do sleep 0.01; done';
    guardian.start([shell(0, script), shell(1, script)]);
    await guardian.until(() => guardian.output(0) === 'ready\n' && guardian.output(1) === 'ready\n');
    guardian.signal(SIGUSR1, 1);
    await guardian.until(() => guardian.output(1).includes('got\n'));
    expect(guardian.output(0)).toBe('ready\n');
    guardian.signal(SIGKILL);
    await guardian.allExited(2);
    expect(guardian.exit(0)).toMatchObject({ signalNumber: SIGKILL });
    expect(await guardian.end()).toBe(0);
  });

  it('the guardian sends the output written before the end when the credit arrives late', async () => {
    await using guardian = new GuardianDriver();
    guardian.start([shell(0, 'seq 100; echo written >&2; sleep 1000')], { outputCredit: 0 });
    await guardian.until(() => guardian.of(FrameKind.spawned).length === 1);
    // Asleep in `sleep`, all is written.
    const children = `/proc/${guardian.pid(0)}/task/${guardian.pid(0)}/children`;
    await expect.poll(() => readFileSync(children, 'utf8').split(' ').map(commandOf)).toContain('sleep');
    guardian.send(FrameKind.end);
    guardian.send(FrameKind.heartbeat);
    await guardian.until(() => guardian.of(FrameKind.heartbeat).length === 1);
    await expect.poll(() => alive(guardian.pid(0))).toBe(false);
    expect(guardian.of(FrameKind.ended)).toEqual([]);
    guardian.credit(1000);
    expect(await guardian.closed()).toBe(0);
    expect(guardian.output(0)).toBe(Array.from({ length: 100 }, (_, i) => `${i + 1}\n`).join(''));
    expect(guardian.output(0, 'stderr')).toBe('written\n');
    expect(guardian.exit(0)).toMatchObject({ signalNumber: SIGKILL });
  });

  it('the guardian removes the runtime directory without following symbolic links', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'guardian-outside-'));
    writeFileSync(join(outside, 'keep'), '');
    const directory = mkdtempSync(join(tmpdir(), 'guardian-'));
    mkdirSync(join(directory, 'a/b'), { recursive: true });
    writeFileSync(join(directory, 'a/b/file'), '');
    symlinkSync(outside, join(directory, 'a/link'));
    const guardian = new GuardianDriver();
    guardian.start([rankOf(0, 'true')], { runtimeDirectory: directory });
    await guardian.allExited(1);
    expect(existsSync(directory)).toBe(true);
    guardian.vanish();
    await guardian.closed();
    expect(existsSync(directory)).toBe(false);
    expect(existsSync(join(outside, 'keep'))).toBe(true);
  });
});

describe('invalid frames', () => {
  const cases: readonly [string, (guardian: GuardianDriver) => void][] = [
    ['a byte sequence that is no frame', (guardian) => guardian.raw(Buffer.alloc(64, 0xee))],
    ['a frame of an unexpected kind', (guardian) => guardian.send(FrameKind.hello)],
    ['a payload of the wrong size', (guardian) => guardian.send(FrameKind.signal, { payload: Buffer.alloc(3) })],
    ['a truncated order', (guardian) => guardian.send(FrameKind.spawn, { payload: Buffer.alloc(10) })],
    ['a second order', (guardian) => guardian.start([rankOf(5, '/bin/true')])],
  ];
  it.each(cases)('%s makes the guardian end the ranks and print an error', async (_name, offend) => {
    const guardian = new GuardianDriver();
    const { environment, survivors } = mark();
    guardian.start([rankOf(0, 'sleep', '1000')], {}, environment);
    await guardian.until(() => guardian.of(FrameKind.spawned).length === 1);
    offend(guardian);
    expect(await guardian.closed()).toBe(2);
    expect(guardian.stderr).toMatch(/^ncclrun-guardian: .+\n/);
    expect(survivors()).toBe(0);
  });
});
