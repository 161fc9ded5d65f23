import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { SpawnStep } from '../../control/messages/guardian.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { FailurePolicy } from '../../launcher/job/failure-policy.ts';
import {
  exportedEnvironment,
  hostAddresses,
  masterEnvironment,
  missingExports,
  outputWindow,
  placementsOf,
} from '../../launcher/job/order.ts';
import { exitedRank, lose, rankResult, waiting } from '../../launcher/job/rank.ts';
import type { RunningRank } from '../../launcher/job/rank.ts';
import type { Forwardable } from '../../launcher/model/forwardable.ts';
import { dieOfInterrupt, SignalPolicy, type SignalActions } from '../../launcher/job/signals.ts';
import { spawnFailure } from '../../launcher/job/spawn-failure.ts';
import type { RankMap } from '../../launcher/model/types.ts';
import { hostNamed } from '../rig/host-slots.ts';

const exitOf = (rank: number, exitCode = 1): Failure => ({
  type: 'rank-exit',
  host: 'h',
  rank,
  pid: 1,
  exitCode,
  outOfMemory: false,
  stderrTail: [],
});
const notByUs = () => false;

describe('the failure policy', () => {
  test('the policy chooses the earliest failure, and the lowest rank among simultaneous ones', () => {
    const policy = new FailurePolicy();
    policy.record(exitOf(3), 1001);
    policy.record(exitOf(2), 1000);
    policy.record(exitOf(1), 1000);
    expect(policy.decide()).toEqual(exitOf(1));
    expect(policy.failures).toEqual([exitOf(1), exitOf(3), exitOf(2)]);
  });

  test('the policy keeps its choice when earlier failures arrive later', () => {
    const policy = new FailurePolicy();
    policy.record(exitOf(5), 1000);
    policy.decide();
    policy.record(exitOf(0), 1);
    expect(policy.decide()).toEqual(exitOf(5));
  });

  test('the policy prefers a failure without a rank among simultaneous ones', () => {
    const policy = new FailurePolicy();
    const timeout: Failure = { type: 'timeout', seconds: 1 };
    policy.record(exitOf(0), 1000);
    policy.record(timeout, 1000);
    expect(policy.decide()).toBe(timeout);
  });

  test("the policy prefers a missing rank to its victims, and the rank's own exit to its absence", () => {
    const lacked: Failure = { type: 'rank-missing', host: 'h', rank: 1, message: 'm', stderrTail: [] };
    const policy = new FailurePolicy();
    policy.record(exitOf(0), 1000);
    policy.record(lacked, 1001);
    expect(policy.decide()).toBe(lacked);
    const own = new FailurePolicy();
    own.record(exitOf(1, 3), 1000);
    own.record(lacked, 1001);
    expect(own.decide()).toEqual(exitOf(1, 3));
  });

  test('the policy decides nothing without a failure', () => {
    const policy = new FailurePolicy();
    expect([policy.any, policy.decide(), policy.failures]).toEqual([false, null, []]);
  });
});

const running: RunningRank = { name: 'running', pid: 7, startedAt: 0 };
const ended = (exitCode: number | null, signalNumber: number | null) =>
  exitedRank(running, { exitCode, signalNumber, time: 5 }, notByUs);

describe('a rank', () => {
  test('the state of an ended rank contains its exit status or signal', () => {
    expect(ended(3, null)).toMatchObject({ exitCode: 3, signal: null, endedAt: 5, endedByUs: false });
    expect(ended(null, 11)).toMatchObject({ exitCode: null, signal: 'SIGSEGV' });
    expect(ended(null, 40)).toMatchObject({ exitCode: 168, signal: null });
  });

  test('a rank is lost with its host unless it has ended', () => {
    expect(lose(waiting)).toEqual({ name: 'lost', pid: null, startedAt: null });
    expect(lose(running)).toEqual({ name: 'lost', pid: 7, startedAt: 0 });
    const over = exitedRank(running, { exitCode: 0, signalNumber: null, time: 5 }, notByUs);
    expect(lose(over)).toBe(over);
  });

  test('rankResult prints times as ISO 8601', () => {
    const over = exitedRank(running, { exitCode: 0, signalNumber: null, time: 1500 }, () => true);
    expect(rankResult(2, 'h1', over)).toEqual({
      rank: 2,
      host: 'h1',
      pid: 7,
      exitCode: 0,
      signal: null,
      startedAt: '1970-01-01T00:00:00.000Z',
      endedAt: '1970-01-01T00:00:01.500Z',
      endedByUs: true,
    });
    expect(rankResult(0, 'h1', waiting)).toMatchObject({ pid: null, startedAt: null });
  });
});

describe('the order', () => {
  test('-x exports NAME with our value, NAME=value and PFX*', () => {
    const ours = { A: '1', NCCL_X: 'x', NCCL_Y: 'y', EMPTY: '' };
    expect(exportedEnvironment(['A', 'B=2=3', 'NCCL_*', 'MISSING', 'EMPTY', 'C='], ours)).toEqual({
      A: '1',
      B: '2=3',
      NCCL_X: 'x',
      NCCL_Y: 'y',
      EMPTY: '',
      C: '',
    });
  });

  test('missingExports reports an unset name but no pattern', () => {
    expect(missingExports(['A', 'B=2', 'NCCL_*', 'MISSING', 'EMPTY'], { A: '1', EMPTY: '' })).toEqual(['MISSING']);
  });

  test('a placement lists ranks by local rank, and only rank 0 reads stdin', () => {
    const map: RankMap = {
      hosts: [hostNamed('a'), hostNamed('b')],
      ranks: [
        { rank: 0, host: 1, program: 0, localRank: 1, localSize: 2, numa: null, gpu: null },
        { rank: 1, host: 0, program: 0, localRank: 0, localSize: 1, numa: null, gpu: null },
        { rank: 2, host: 1, program: 0, localRank: 0, localSize: 2, numa: null, gpu: null },
      ],
    };
    const [, placement] = placementsOf(map, {
      programs: [],
      readsStdin: (rank: number) => rank === 0,
      terminal: false,
      mergeStderr: false,
      pmi: 'none' as const,
      isolateGpus: false,
    });
    expect(placement).toMatchObject({ hostIndex: 1, hostCount: 2, rankCount: 3 });
    expect(placement?.ranks.map(({ rank, stdinPipe }) => [rank, stdinPipe])).toEqual([
      [2, false],
      [0, true],
    ]);
    const master = masterEnvironment(map, ['10.0.0.1', '10.0.0.2'], [{ hello: null }, { hello: { freePort: 777 } }]);
    expect(master).toEqual({ MASTER_ADDR: '10.0.0.2', MASTER_PORT: '777' });
  });

  test('hostAddresses prefers the ssh address, our own address as others see it, or loopback', () => {
    expect(hostAddresses(hostNamed('a'), ['10.0.0.1', '172.17.0.1'], '10.0.0.9', false)).toEqual([
      '10.0.0.1',
      '172.17.0.1',
    ]);
    expect(hostAddresses(hostNamed('localhost', { local: true }), ['172.17.0.1'], '10.0.0.9', false)).toEqual([
      '10.0.0.9',
      '172.17.0.1',
    ]);
    expect(hostAddresses(hostNamed('localhost', { local: true }), ['10.0.0.1'], '10.0.0.9', true)).toEqual([
      '127.0.0.1',
    ]);
    expect(hostAddresses(hostNamed('localhost', { local: true }), [], null, false)).toEqual(['127.0.0.1']);
  });

  test('outputWindow divides a bounded total over the hosts', () => {
    expect(outputWindow(1)).toBe(4 * 1024 * 1024);
    expect(outputWindow(64)).toBe(1024 * 1024);
    expect(outputWindow(10_000)).toBe(256 * 1024);
  });
});

describe('the failure of a start', () => {
  const place = { host: 'h', rank: 1, program: './p' };

  test.each([
    [2, SpawnStep.exec, 'not-found', 'ENOENT'],
    [20, SpawnStep.exec, 'not-found', 'ENOTDIR'],
    [13, SpawnStep.exec, 'not-executable', 'EACCES'],
    [8, SpawnStep.exec, 'not-executable', 'ENOEXEC'],
    [2, SpawnStep.directory, 'working-directory', 'ENOENT'],
    [11, SpawnStep.fork, 'system', 'EAGAIN'],
    [7, SpawnStep.exec, 'not-executable', 'E2BIG'],
  ])('errno %i at step %i has the cause %s', (errno, step, cause, name) => {
    expect(spawnFailure(place, '/there', { errno, step })).toMatchObject({
      type: 'spawn',
      ...place,
      cause,
      errno: name,
    });
  });

  const directory = fileURLToPath(new URL('.', import.meta.url));
  test.each<[string, number, SpawnStep, string | null]>([
    [
      './none',
      2,
      SpawnStep.exec,
      'check the path on h; if the file is there, the interpreter that its first line names is not',
    ],
    ['none', 2, SpawnStep.exec, 'check the name, the PATH on h, or give the full path'],
    ['job-parts.test.ts', 2, SpawnStep.exec, `it is no command, but a file in ${directory}: write ./job-parts.test.ts`],
    [
      'p',
      13,
      SpawnStep.exec,
      'it must be a file with execute permission, in directories that you may enter (namei -l p shows them): chmod +x p, or start it with its interpreter',
    ],
    ['p', 2, SpawnStep.directory, `make ${directory} on h, or name another directory with --wdir`],
    ['p', 1, SpawnStep.fork, 'a sandbox or security module on h refuses this'],
    ['p', 5, SpawnStep.fork, null],
  ])('the remedy for %s with errno %i at step %i is %j', (name, errno, step, remedy) => {
    expect(spawnFailure({ ...place, program: name }, directory, { errno, step }).remedy).toBe(remedy);
  });
});

function recordedSignals(forwarded: readonly Forwardable[] = ['SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT']) {
  const calls: string[] = [];
  const actions: SignalActions = {
    interrupt: () => calls.push('interrupt'),
    terminate: (signal) => calls.push(`terminate ${signal}`),
    leave: () => calls.push('leave'),
    forward: (signal) => calls.push(`forward ${signal}`),
    ignore: (signal) => calls.push(`ignore ${signal}`),
    suspend: (ranks) => calls.push(ranks ? 'stop all' : 'stop'),
    resume: (ranks) => calls.push(ranks ? 'resume all' : 'resume'),
  };
  const signals = new SignalPolicy(actions, forwarded);
  return { signals, calls };
}

describe('signals to the launcher', () => {
  test('the three ^C interrupt, terminate and leave', () => {
    const { signals, calls } = recordedSignals();
    for (let press = 0; press < 3; press++) signals.receive('SIGINT');
    expect(calls).toEqual(['interrupt', 'terminate SIGINT', 'leave']);
  });

  test('a job that ^C has ended with that status ends the launcher by the signal, and no other job does', () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    const listeners = process.listeners('SIGINT');
    onTestFinished(() => {
      kill.mockRestore();
      for (const one of listeners) process.on('SIGINT', one);
    });
    recordedSignals().signals.receive('SIGINT');
    for (const status of [0, 1, 129, 131]) dieOfInterrupt(status);
    expect(kill).not.toHaveBeenCalled();
    dieOfInterrupt(130);
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGINT']]);
  });

  test('SIGTERM terminates at once, and so does a following ^C', () => {
    const { signals, calls } = recordedSignals();
    signals.receive('SIGTERM');
    signals.receive('SIGINT');
    expect(calls).toEqual(['terminate SIGTERM', 'terminate SIGINT']);
  });

  test('other signals are forwarded and do not count as ^C', () => {
    const { signals, calls } = recordedSignals();
    for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT', 'SIGHUP'] as const) signals.receive(signal);
    expect(calls).toEqual(['forward SIGUSR1', 'forward SIGUSR2', 'stop all', 'resume all', 'terminate SIGHUP']);
  });

  test('signals that are not forwarded are ignored or suspend only the launcher', () => {
    const { signals, calls } = recordedSignals([]);
    for (const signal of ['SIGUSR1', 'SIGTSTP', 'SIGCONT', 'SIGCONT'] as const) signals.receive(signal);
    expect(calls).toEqual(['ignore SIGUSR1', 'stop', 'resume', 'resume']);
  });
});
