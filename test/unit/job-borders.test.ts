/** Parts of a job at their borders: orders, differences between hosts, GPUs' memory and errors. */
import { describe, expect, test } from 'vitest';
import { memorySentence } from '../../launcher/job/gpu-memory.ts';
import {
  exportedEnvironment,
  listenerEnvironment,
  masterEnvironment,
  orderedProgram,
  placementsOf,
} from '../../launcher/job/order.ts';
import { differences } from '../../launcher/job/preflight.ts';
import { describeEnd, describeOver, exitedRank, waiting } from '../../launcher/job/rank.ts';
import { Xids } from '../../launcher/job/xids.ts';
import type { RankMap } from '../../launcher/model/types.ts';
import { hostNamed } from '../rig/host-slots.ts';

describe('orders', () => {
  const map: RankMap = {
    hosts: [hostNamed('a', { devices: [3] }), hostNamed('b')],
    ranks: [1, 0].map((host, rank) => ({ rank, host, program: 0, localRank: 0, localSize: 1, numa: null, gpu: 7 })),
  };
  const facts = {
    programs: [],
    readsStdin: (rank: number) => rank === 1,
    terminal: false,
    mergeStderr: true,
    pmi: 'none' as const,
    isolateGpus: false,
  };

  test('a rank sees the GPUs that the allocation names, or its own alone', () => {
    const seen = (isolateGpus: boolean, gpu: number | null = 2) =>
      placementsOf(
        map,
        { ...facts, isolateGpus },
        map.ranks.map(() => ({ cpus: [1], numa: null, gpu })),
      ).map(({ ranks }) => ranks[0]?.visibleGpus);
    expect([seen(false), seen(true), seen(true, null)]).toEqual([
      [[3], null],
      [[2], [2]],
      [null, null],
    ]);
    expect(placementsOf(map, { ...facts, isolateGpus: true })[0]?.ranks[0]).toMatchObject({
      visibleGpus: null,
      cpus: [],
      gpu: 7,
      mergeStderr: true,
    });
  });

  test('a rank is interactive that reads our terminal, or is the only one', () => {
    const interactive = (terminal: boolean) =>
      placementsOf(map, { ...facts, terminal }).map(({ ranks }) => ranks[0]?.interactive);
    expect([interactive(true), interactive(false)]).toEqual([
      [true, false],
      [false, false],
    ]);
    const alone = { hosts: map.hosts, ranks: map.ranks.slice(0, 1) };
    expect(placementsOf(alone, facts)[1]?.ranks[0]?.interactive).toBe(true);
  });

  test('where ranks meet is on the host of rank 0, and a single host needs no address', () => {
    expect(
      masterEnvironment(map, ['10.0.0.1', '10.0.0.2'], [{ hello: { freePort: 5 } }, { hello: { freePort: 6 } }]),
    ).toEqual({ MASTER_ADDR: '10.0.0.2', MASTER_PORT: '6' });
    expect(masterEnvironment({ hosts: [], ranks: [] }, [], [{ hello: null }])).toEqual({
      MASTER_ADDR: '127.0.0.1',
      MASTER_PORT: '0',
    });
    expect([
      listenerEnvironment(['x'], 0),
      listenerEnvironment(['x', 'y'], 1),
      listenerEnvironment(['x', 'y'], 2),
    ]).toEqual([{}, { NCCLRUN_HOST_ADDRESS: 'y' }, {}]);
  });

  test('a program has its directory, and variables by name, value or beginning', () => {
    const program = { argv: ['p'], ranks: null, ranksPerHost: null, exports: ['A=1'], hostList: null };
    expect(orderedProgram({ ...program, workingDirectory: '/d' }, {})).toEqual({
      argv: ['p'],
      workingDirectory: '/d',
      workingDirectoryGiven: true,
      environment: { A: '1' },
    });
    expect(orderedProgram({ ...program, workingDirectory: null }, {})).toMatchObject({
      workingDirectory: process.cwd(),
      workingDirectoryGiven: false,
    });
    const ours = { AB: '1', A: '2', '=x': '3', BA: '4', U: undefined };
    expect([
      exportedEnvironment(['A*'], ours),
      exportedEnvironment(['=x'], ours),
      exportedEnvironment(['A', 'U'], ours),
      exportedEnvironment(['=y'], ours),
    ]).toEqual([{ AB: '1', A: '2' }, { '=x': '3' }, { A: '2' }, {}]);
  });
});

const host = (name: string, value: string, clockAheadMs = 0) => ({ name, facts: { files: value }, clockAheadMs });

describe('differences between hosts', () => {
  test.each([
    [[host('a', '1'), host('b', '1')], []],
    [[host('a', '2'), host('b', '1'), host('c', '1')], ['hosts differ in files: b, c: 1; a: 2']],
    [
      ['a', 'b', 'c', 'd'].map((name) => host(name, '1')).concat(host('x', '2')),
      ['hosts differ in files: a, b, c, d: 1; x: 2'],
    ],
    [
      ['a', 'b', 'c', 'd', 'e'].map((name) => host(name, '1')).concat(host('x', '2')),
      ['hosts differ in files: 5 hosts: 1; x: 2'],
    ],
    [[host('a', '1', 2000), host('b', '1', -2000)], []],
    [
      [host('a', '1', 2001), host('b', '1', -2060)],
      ["the clock of a is 2 s ahead of this host's", "the clock of b is 2.1 s behind this host's"],
    ],
  ])('%j differ as %j', (hosts, sentences) => {
    expect(differences(hosts)).toEqual(sentences);
  });
});

describe("GPUs' memory", () => {
  const gib = 2 ** 30;
  const gpu = (free: number, total = 80, index = 0) => ({
    gpu: index,
    total: total * gib,
    free: free * gib,
    holders: [],
  });
  const sentence = (...hosts: readonly (readonly ReturnType<typeof gpu>[])[]) =>
    memorySentence(new Map(hosts.map((gpus, index) => [`h${index}`, gpus])));

  test('a tenth of the whole, and 2 GiB, may be taken', () => {
    expect([sentence([gpu(72)]), sentence([gpu(8, 10)])]).toEqual([null, null]);
    expect(sentence([gpu(71.9)])).toMatch(/^GPUs lack free memory: h0: 72 of 80 GiB on GPU 0/u);
    expect(sentence([gpu(7.9, 10)])).toMatch(/^GPUs lack free memory: h0: 7.9 of 10 GiB on GPU 0/u);
  });

  test('four hosts are named, and hosts with free memory stand beside them', () => {
    const short = [gpu(1)];
    expect(sentence(short, short, short, short)).not.toContain('more hosts');
    expect(sentence(short, short, short, short, short)).toContain('; 1 more hosts likewise');
    expect(sentence([gpu(80)], short)).toMatch(
      /^hosts differ in free GPU memory: h0: 80 of 80 GiB; h1: 1 of 80 GiB on GPU 0/u,
    );
    expect(sentence([], short)).toMatch(/^GPUs lack free memory: h1/u);
  });
});

const rig = () => {
  const reported: number[] = [];
  const xids = new Xids({
    clockAheadMs: (host) => (host === 'late' ? 1000 : 0),
    report: ({ code }) => void reported.push(code),
  });
  const say = (code: number, time: number, ranks: readonly number[] = [], since: number | null = null) =>
    xids.receive(
      { name: 'h', clockAheadMs: 0 },
      { code, gpu: 0, address: 'a', ranks, pid: null, message: 'm', time },
      since === null ? { name: 'running' } : { name: 'stopping', since, kill: null },
    );
  const before = (rank: number, time: number, host = 'h') => {
    const failure = xids.complete(
      { type: 'rank-exit', host, rank, pid: 1, exitCode: 1, outOfMemory: false, stderrTail: [] },
      time,
    );
    return 'xids' in failure ? (failure.xids ?? []).map(({ code, secondsBefore }) => `${code}:${secondsBefore}`) : null;
  };
  return { reported, say, before };
};

describe("GPUs' errors", () => {
  test('errors from when the ranks were to end are ours', () => {
    const { reported, say } = rig();
    say(1, 999, [], 1000);
    say(2, 1000, [], 1000);
    say(3, 1001, [], 1000);
    expect(reported).toEqual([1]);
  });

  test("a failure lists the rank's own errors first, then the latest of others, at most four, and half a second later ones", () => {
    const { say, before } = rig();
    for (const [code, time, rank] of [
      [1, 1000, 0],
      [2, 2000, 1],
      [3, 3000, 0],
      [4, 4000, 0],
      [5, 5000, 1],
      [6, 5501, 0],
    ] as const)
      say(code, time, [rank]);
    expect(before(1, 5000)).toEqual(['2:3', '5:0', '4:1', '3:2']);
    expect(before(1, 4500)).toEqual(['2:2.5', '5:0', '4:0.5', '3:1.5']);
    expect(before(1, 4499)).toEqual(['2:2.5', '4:0.5', '3:1.5', '1:3.5']);
    expect(before(9, 6000, 'late')).toEqual(['5:0', '4:1', '3:2', '2:3']);
    expect(rig().before(1, 1)).toBeNull();
  });
});

test('the end of a rank is a phrase', () => {
  const running = { name: 'running', pid: 1, startedAt: 0 } as const;
  const exited = exitedRank(running, { exitCode: 3, signalNumber: null, time: 5 }, () => false);
  const killed = exitedRank(running, { exitCode: null, signalNumber: 9, time: 5 }, () => false);
  expect([describeEnd(exited), describeEnd(killed)]).toEqual(['exited with status 3', 'was killed by SIGKILL']);
  expect([exited, { name: 'unstarted' } as const, waiting, running].map(describeOver)).toEqual([
    'exited with status 3',
    'could not be started',
    null,
    null,
  ]);
});
