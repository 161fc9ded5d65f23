/** What every rank finds in its environment, and on which Node its program runs. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { AgentOrder, OrderedProgram } from '../../control/messages/link.ts';
import { decodeKeyFailed } from '../../control/messages/rendezvous-codec.ts';
import {
  gpuEnvironment,
  type HostEnvironment,
  jobEnvironment,
  programEnvironment,
  rankEnvironment,
  usualEnvironment,
} from '../../worker/agent/environment.ts';
import { installationRoot, libraryPath } from '../../worker/agent/installation.ts';
import { preloadEnvironment, preloadProblem } from '../../worker/agent/preload.ts';
import { fromOwnInstallation, interpretedProgram } from '../../worker/agent/program.ts';
import { refuseSpread, spreadOf } from '../../worker/agent/spread.ts';
import { merged, newKey } from '../rig/rendezvous.ts';

const order: AgentOrder = {
  schemaVersion: 1,
  version: '1',
  jobId: 'the-job',
  epoch: 2,
  maxRestarts: 5,
  stays: false,
  hostName: 'h',
  placement: null,
  uniqueId: 'unique',
  leaseMs: 1,
  heartbeatMs: 1,
  outputCredit: 1,
  plansLocally: true,
  installation: '',
  interfaces: null,
  addressFamily: null,
  verbs: true,
  topology: false,
  hangAfterMs: 0,
  preload: false,
  portRange: null,
  busyGpus: 'report',
  outerJob: null,
};
const rank = {
  rank: 6,
  program: 1,
  visibleGpus: null,
  gpu: null,
  stdinPipe: false,
  interactive: false,
  mergeStderr: false,
  cpus: [],
};
const facts: HostEnvironment = {
  order,
  placement: { hostIndex: 3, hostCount: 4, rankCount: 9, programs: [], ranks: [rank, { ...rank, rank: 7 }] },
  start: { MASTER_ADDR: 'n0' },
  localRanks: null,
  agentSocket: '/run/agent',
  rasPort: 28_028,
};

describe('the environment of a rank', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('all ranks of a host have the numbers of the job', () => {
    expect(jobEnvironment(facts)).toEqual({
      WORLD_SIZE: '9',
      LOCAL_WORLD_SIZE: '2',
      GROUP_RANK: '3',
      GROUP_WORLD_SIZE: '4',
      TORCHELASTIC_RESTART_COUNT: '2',
      TORCHELASTIC_MAX_RESTARTS: '5',
      TORCHELASTIC_RUN_ID: 'the-job',
      OMPI_COMM_WORLD_SIZE: '9',
      OMPI_COMM_WORLD_LOCAL_SIZE: '2',
      NCCLRUN_JOB_ID: 'the-job',
      NCCLRUN_SIZE: '9',
      NCCLRUN_AGENT: '/run/agent',
      NCCLRUN_UNIQUE_ID: 'unique',
    });
  });

  test('a rank has its own numbers', () => {
    expect(rankEnvironment(rank, 1, '/run/dir', false)).toEqual({
      RANK: '6',
      LOCAL_RANK: '1',
      TORCHELASTIC_ERROR_FILE: '/run/dir/error-6.json',
      OMPI_COMM_WORLD_RANK: '6',
      OMPI_COMM_WORLD_LOCAL_RANK: '1',
      OMPI_COMM_WORLD_NODE_RANK: '1',
      NCCLRUN_RANK: '6',
      NCCLRUN_LOCAL_RANK: '1',
      NCCLRUN_PROGRAM: '1',
    });
  });

  test('the port of NCCL stands unless the host has set one', () => {
    vi.stubEnv('NCCL_RAS_ADDR', undefined);
    expect(usualEnvironment(facts)).toEqual({ NCCL_RAS_ADDR: 'localhost:28028', MASTER_ADDR: 'n0' });
    vi.stubEnv('NCCL_RAS_ADDR', 'own:1');
    expect(usualEnvironment(facts)).toEqual({ MASTER_ADDR: 'n0' });
  });

  test('-x does not hide what only the job knows', () => {
    const program: OrderedProgram = {
      argv: ['x'],
      workingDirectory: '/',
      workingDirectoryGiven: true,
      environment: { WORLD_SIZE: '1', FOO: 'bar' },
    };
    expect(programEnvironment(program, jobEnvironment(facts))).toEqual({ FOO: 'bar' });
  });

  const gpus = ['GPU-a', 'GPU-b', 'GPU-c'].map((name, index) => ({ name, index, address: null }));
  test.each<[number[] | null, number | null, number, Record<string, string>, Record<string, string>]>([
    [null, null, 1, {}, { NCCLRUN_LOCAL_DEVICE: '1' }],
    [null, null, 4, {}, { NCCLRUN_LOCAL_DEVICE: '1' }],
    [null, 2, 0, {}, { NCCLRUN_LOCAL_DEVICE: '2' }],
    [null, 0, 1, {}, { NCCLRUN_LOCAL_DEVICE: '0' }],
    [null, 7, 1, {}, { NCCLRUN_LOCAL_DEVICE: '1' }],
    [[2, 0], 0, 0, {}, { NCCLRUN_LOCAL_DEVICE: '1', CUDA_VISIBLE_DEVICES: 'GPU-c,GPU-a' }],
    [[2, 9], null, 3, {}, { NCCLRUN_LOCAL_DEVICE: '1', CUDA_VISIBLE_DEVICES: 'GPU-c,9' }],
    [[], null, 0, {}, { CUDA_VISIBLE_DEVICES: '' }],
    [null, null, 1, { CUDA_VISIBLE_DEVICES: '' }, {}],
    [[1], null, 1, { CUDA_VISIBLE_DEVICES: '0' }, { NCCLRUN_LOCAL_DEVICE: '0', CUDA_VISIBLE_DEVICES: 'GPU-b' }],
  ])('the GPUs %j, its own %j, give local rank %i with -x %j: %j', (visibleGpus, gpu, localRank, program, expected) => {
    expect(gpuEnvironment({ visibleGpus, gpu }, localRank, gpus, program)).toEqual(expected);
  });

  test('a host without GPUs sets nothing of them', () => {
    expect(gpuEnvironment({ visibleGpus: [0], gpu: 0 }, 0, [], {})).toEqual({});
  });

  test('the engine is preloaded before what is preloaded already', () => {
    expect(preloadEnvironment({}, {})).toEqual({ LD_PRELOAD: libraryPath });
    expect(preloadEnvironment({}, { LD_PRELOAD: 'a.so' })).toEqual({ LD_PRELOAD: `${libraryPath}:a.so` });
    expect(preloadEnvironment({ LD_PRELOAD: '' }, { LD_PRELOAD: 'a.so' })).toEqual({ LD_PRELOAD: libraryPath });
  });
});

const own = (argv: string[], theirs: string) => fromOwnInstallation(argv, theirs);

describe('the program of a rank', () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'ncclrun program-')));
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });
  const write = (path: string, text = ''): string => {
    mkdirSync(join(directory, path, '..'), { recursive: true });
    writeFileSync(join(directory, path), text);
    return join(directory, path);
  };

  test('a program of the installation of the launcher is taken from ours', () => {
    expect(own(['/theirs/bin/x', 'a'], '/theirs')).toEqual([`${installationRoot}/bin/x`, 'a']);
    expect(own(['/theirs-too/bin/x'], '/theirs')).toEqual(['/theirs-too/bin/x']);
    expect(own([`${installationRoot}/none`], installationRoot)).toEqual([`${installationRoot}/none`]);
    const there = write('bin/there');
    expect(own([there], directory)).toEqual([there]);
  });

  test('Python programs run on python3 unless they are executable or not there', () => {
    write('train.py', 'print(1)');
    expect(interpretedProgram(['train.py', '--lr'], directory)?.argv).toEqual(['python3', 'train.py', '--lr']);
    expect(interpretedProgram(['./train.py'], directory)?.argv).toEqual(['python3', './train.py']);
    const own = write('own.py', '#!/opt/venv/bin/python\n');
    chmodSync(own, 0o755);
    expect(interpretedProgram([own], directory)).toBeNull();
    chmodSync(write('bare.py', 'print(1)'), 0o755);
    expect(interpretedProgram(['bare.py'], directory)?.argv).toEqual(['python3', 'bare.py']);
    expect(interpretedProgram(['absent.py'], directory)).toBeNull();
  });

  test('only JavaScript and TypeScript run on our Node', () => {
    expect(interpretedProgram([], directory)).toBeNull();
    expect(interpretedProgram(['x.sh'], directory)).toBeNull();
    for (const name of ['a.ts', 'a.mts', 'a.js', 'a.mjs']) expect(interpretedProgram([name], directory)).not.toBeNull();
  });

  const argvOf = (program: string): readonly string[] => interpretedProgram([program, 'b'], directory)?.argv ?? [];

  test('a program finds ncclrun by itself only where it is installed beside it', () => {
    const start = [process.execPath, '--disable-warning=ExperimentalWarning'];
    write('alone/a.ts');
    const [, , option, resolver] = argvOf('alone/a.ts');
    expect([option, resolver]).toEqual(['--import', expect.stringMatching(/^file:.*\/dist\/bundle\/resolve\.mjs$/u)]);
    expect(argvOf('alone/a.ts').slice(4)).toEqual(['alone/a.ts', 'b']);
    write('with/node_modules/ncclrun/package.json', '{}');
    write('with/deep/a.ts');
    expect(argvOf('with/deep/a.ts')).toEqual([...start, 'with/deep/a.ts', 'b']);
    write('itself/package.json', '{ "name" : "ncclrun" }');
    write('itself/src/a.ts');
    expect(argvOf('itself/src/a.ts')).toHaveLength(4);
    write('itself/other/package.json', '{ "name": "other" }');
    write('itself/other/a.ts');
    expect(argvOf('itself/other/a.ts')).toHaveLength(6);
  });

  test('a program that cannot be read is reported', () => {
    write('there.ts');
    expect(interpretedProgram(['there.ts'], directory)?.readable).toBe(true);
    expect(interpretedProgram(['absent.ts'], directory)?.readable).toBe(false);
  });

  test('the engine can be preloaded from a readable path without spaces', () => {
    expect(preloadProblem(write('engine.so'))?.message).toContain('its path has a space, a colon or a semicolon');
    expect(preloadProblem('/absent/engine.so')?.message).toContain('the engine cannot be read: ENOENT');
    expect(preloadProblem('/proc/self/exe')).toBeNull();
  });
});

describe('a job of another launcher', () => {
  test.each([
    [{}, null],
    [{ WORLD_SIZE: '4', LOCAL_WORLD_SIZE: '4' }, null],
    [{ WORLD_SIZE: '4', LOCAL_WORLD_SIZE: '0' }, null],
    [{ WORLD_SIZE: '4' }, null],
    [
      { WORLD_SIZE: '2', LOCAL_WORLD_SIZE: '1' },
      { all: 2, here: 1, source: 'LOCAL_WORLD_SIZE' },
    ],
    [
      { OMPI_COMM_WORLD_SIZE: '8', OMPI_COMM_WORLD_LOCAL_SIZE: '4' },
      { all: 8, here: 4, source: 'OMPI_COMM_WORLD_LOCAL_SIZE' },
    ],
  ])('the variables %j show processes on other hosts: %j', (environment, expected) => {
    expect(spreadOf(environment)).toEqual(expected);
  });

  test('ranks that join a communicator of all processes are refused', () => {
    const key = newKey();
    const sentenceOf = (here: number, size: number, of = key): string | null => {
      const refused = refuseSpread({ all: 4, here, source: 'X' }, merged(of, size, []));
      return refused === null ? null : decodeKeyFailed(refused.payload).sentence;
    };
    const rest =
      'on this host (X): without ncclrun the ranks of a communicator are on one host. Start the program with: ncclrun -H HOST1:N,HOST2:N PROGRAM';
    expect(sentenceOf(1, 4)).toBe(`4 ranks, of which 1 is ${rest}`);
    expect(sentenceOf(2, 5)).toBe(`5 ranks, of which 2 are ${rest}`);
    expect([sentenceOf(2, 3), sentenceOf(2, 4, newKey(3))]).toEqual([null, null]);
    expect(refuseSpread({ all: 4, here: 1, source: 'X' }, makeFrame(FrameKind.heartbeat))).toBeNull();
  });
});
