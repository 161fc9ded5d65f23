/** The end of a host's ranks when something stands in its way: processes that cannot be ended, directories that are slow to remove, two faults at once. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile } from '../rig/compile.ts';
import { killHard, localGuardian, localWarden } from '../rig/faults.ts';
import { alive, descendants, processEntry, withEnvironment } from '../rig/processes.ts';
import { until } from '../rig/until.ts';
import { GUARDIAN, GuardianDriver, rankOf } from './guardian-driver.ts';

const notRoot = process.getuid?.() === 0 ? null : 'to become another user needs root';
const { SIGKILL } = constants.signals;
/** Nobody's in the password database. */
const USER = 45_678;
const LEASE_MS = 1000;
/** Until processes that were left must be gone, two leases and a second look included. */
const GONE_MS = 8000;

let directory = '';
let linger = '';
let deep = '';

beforeAll(async () => {
  directory = mkdtempSync('/var/tmp/ncclrun-ending-');
  chmodSync(directory, 0o777);
  linger = await compile('test/rig/programs/linger.c', directory);
  deep = await compile('test/rig/programs/deep.c', directory);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
const fresh = (): string => join(directory, `pid-${files++}`);
const pidIn = (file: string): number => Number(readFileSync(file, 'utf8'));

function notices(guardian: GuardianDriver): string[] {
  return guardian.of(FrameKind.notice).map(({ payload }) => Buffer.from(payload).toString('utf8'));
}

/** The guardian that this warden has. */
function wardOf(warden: number): number {
  const found = descendants(warden).find(({ argv }) => argv[0] === GUARDIAN);
  if (found === undefined) throw new Error('the warden has no guardian');
  return found.pid;
}

describeIf(notRoot, 'a process that has become root', () => {
  let setuid = '';
  beforeAll(() => {
    setuid = linger;
    chownSync(setuid, 0, 0);
    chmodSync(setuid, 0o4755);
  });

  it('the guardian reports a process that it cannot kill, and answers heartbeats until it exits with 0', async () => {
    const file = fresh();
    await using guardian = new GuardianDriver([], USER);
    guardian.start([rankOf(0, setuid, 'root', file)], { leaseMs: LEASE_MS });
    await guardian.allExited(1);
    const pid = pidIn(file);
    try {
      guardian.send(FrameKind.end);
      const beats = setInterval(() => guardian.send(FrameKind.heartbeat), LEASE_MS / 4);
      const status = await guardian.closed().finally(() => clearInterval(beats));
      expect(status).toBe(0);
      expect(guardian.of(FrameKind.heartbeat).length).toBeGreaterThan(0);
      expect(notices(guardian)).toEqual([
        `could not end process ${pid} (linger, root, state S): it belongs to another user; end it there as that user or as root`,
      ]);
      expect(guardian.frames.at(-1)?.kind).toBe(FrameKind.ended);
    } finally {
      killHard(pid);
    }
  });

  it('the guardian reports a rank that became root as killed', async () => {
    const file = fresh();
    await using guardian = new GuardianDriver([], USER);
    guardian.start([rankOf(0, setuid, 'rank', file)]);
    await until('the rank is root', () => existsSync(file), 20_000);
    const pid = pidIn(file);
    try {
      expect(await guardian.end()).toBe(0);
      expect(guardian.exit(0)).toMatchObject({ signalNumber: SIGKILL });
      expect(notices(guardian)).toEqual([expect.stringContaining(`could not end process ${pid} (linger, root`)]);
    } finally {
      killHard(pid);
    }
  });

  it('the job keeps its exit status, and the launcher names the surviving process', async () => {
    const file = fresh();
    const words = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'];
    const job = [join(repository, 'bin/ncclrun'), '-n', '2', 'sh', '-c', `[ $RANK = 1 ] || ${setuid} root ${file}`];
    const { status, stderr, milliseconds } = await Command.run([...words.slice(1), ...job], {
      program: words[0] ?? '',
      environment: { HOME: directory },
    });
    const pid = pidIn(file);
    try {
      expect({ status, stderr }).toEqual({
        status: 0,
        stderr: expect.stringContaining(`could not end process ${pid} (linger, root, state S)`),
      });
      expect(milliseconds).toBeLessThan(10_000);
    } finally {
      if (alive(pid)) killHard(pid);
    }
  });
});

describe('a process whose first thread has ended', () => {
  it('such a process dies with the job after guardian and warden were killed', async () => {
    const file = fresh();
    await using command = Command.start(['-n', '1', 'sh', '-c', `${linger} thread ${file}; exec sleep 1000`]);
    await until('the process is so far', () => existsSync(file), 20_000);
    const pid = pidIn(file);
    await until('its first thread has ended', () => processEntry(pid)?.state === 'Z', 5000);
    expect(alive(pid)).toBe(true);
    const [guardian, warden] = [localGuardian(command), localWarden(command)];
    killHard(warden);
    killHard(guardian);
    expect((await command.outcome).status).toBe(125);
    await command.nothingLeft(0);
    expect(alive(pid)).toBe(false);
  });
});

describe('a runtime directory', () => {
  it('the guardian removes a runtime directory of 500 levels within its lease', async () => {
    const runtime = mkdtempSync(join(directory, 'runtime-'));
    await using guardian = new GuardianDriver([runtime]);
    guardian.start([{ ...rankOf(0, deep, '500'), workingDirectory: runtime }], {
      leaseMs: 30_000,
      runtimeDirectory: runtime,
    });
    await guardian.allExited(1);
    expect(guardian.exit(0)).toMatchObject({ exitCode: 0 });
    expect(await guardian.end()).toBe(0);
    expect(notices(guardian)).toEqual([]);
    expect(existsSync(runtime)).toBe(false);
  });

  it.skipIf(notRoot !== null)('the guardian removes a runtime directory that contains a locked directory', async () => {
    const runtime = mkdtempSync(join(directory, 'runtime-'));
    chownSync(runtime, USER, USER);
    await using guardian = new GuardianDriver([runtime], USER);
    guardian.start([{ ...rankOf(0, deep, 'locked'), workingDirectory: runtime }], { runtimeDirectory: runtime });
    await guardian.allExited(1);
    expect(guardian.exit(0)).toMatchObject({ exitCode: 0 });
    expect(await guardian.end()).toBe(0);
    expect(existsSync(runtime)).toBe(false);
  });

  it.skipIf(notRoot !== null)(
    'the guardian reports a file of another user that it cannot remove, and exits with 0',
    async () => {
      const runtime = mkdtempSync(join(directory, 'runtime-'));
      const inner = mkdtempSync(join(runtime, 'roots-'));
      writeFileSync(join(inner, 'file'), '');
      chownSync(runtime, USER, USER);
      await using guardian = new GuardianDriver([runtime], USER);
      expect(await guardian.end()).toBe(0);
      expect(notices(guardian)).toEqual([expect.stringMatching(`^could not remove ${runtime}: .*Permission denied`)]);
    },
  );
});

/** Processes of a guardian of its own, all of which carry a mark. */
async function started(
  words: readonly string[] = [],
): Promise<{ guardian: GuardianDriver; ward: number; left: () => number }> {
  const value = `ending-${process.pid}-${Math.random()}`;
  const guardian = new GuardianDriver(words);
  const file = fresh();
  guardian.start(
    [rankOf(0, 'sh', '-c', `${linger} plain ${file}; echo ready; exec sleep 1000`)],
    { leaseMs: LEASE_MS },
    { MARK: value },
  );
  await guardian.until(() => guardian.output(0) === 'ready\n');
  return { guardian, ward: wardOf(guardian.process.pid ?? 0), left: () => withEnvironment(`MARK=${value}`).length };
}

describe('two simultaneous faults', () => {
  it('no process remains when guardian and agent are killed', async () => {
    const { guardian, ward, left } = await started();
    killHard(ward);
    guardian.vanish();
    await until('nothing left', () => left() === 0, GONE_MS);
    await guardian.closed();
  });

  it('no process remains when warden and agent are killed', async () => {
    const { guardian, left } = await started();
    guardian.process.kill('SIGKILL');
    guardian.vanish();
    await until('nothing left', () => left() === 0, GONE_MS);
    await guardian.closed();
  });

  it('no process remains when the guardian is stopped and the agent is killed', async () => {
    const { guardian, ward, left } = await started();
    process.kill(ward, 'SIGSTOP');
    guardian.vanish();
    await until('nothing left', () => left() === 0 && !alive(ward), GONE_MS);
    await guardian.closed();
  });

  it('no process remains when the guardian is stopped and the agent is silent', async () => {
    const { guardian, ward, left } = await started();
    process.kill(ward, 'SIGSTOP');
    await until('nothing left', () => left() === 0 && !alive(ward), GONE_MS);
    await guardian.closed();
    expect(guardian.stderr).toContain('no sign of life from the guardian');
  });
});

describe('an agent that is stopped while the job ends', () => {
  it('the warden kills it, also where the guardian has ended by itself', async () => {
    const words = ['-c', '"$@" & echo; wait', 'sh', GUARDIAN, '', String(LEASE_MS), 'agent'];
    const agent = spawn('sh', words, { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
    onTestFinished(() => void agent.kill('SIGKILL'));
    const [, output, , socket] = agent.stdio;
    if (output === null || !(socket instanceof Duplex)) throw new Error('the agent has no socket');
    await once(output, 'data');
    const ended = once(agent, 'exit');
    agent.kill('SIGSTOP');
    socket.write(encodeFrame(makeFrame(FrameKind.end)));
    expect(await ended).toEqual([null, 'SIGKILL']);
  });
});

describe('launcher and guardian that are killed together', () => {
  it('neither hidden processes nor the runtime directory remain', async () => {
    const file = fresh();
    await using command = Command.start(['-n', '1', 'sh', '-c', `${linger} plain ${file}; exec sleep 1000`]);
    await until('the hidden process is there', () => existsSync(file), 20_000);
    const pid = pidIn(file);
    const [, runtime = ''] = processEntry(localWarden(command))?.argv.filter((word) => word !== '') ?? [];
    expect(existsSync(runtime)).toBe(true);
    const guardian = localGuardian(command);
    killHard(guardian);
    killHard(command.pid);
    await command.nothingLeft(GONE_MS);
    expect(alive(pid)).toBe(false);
    expect(existsSync(runtime)).toBe(false);
  });
});
