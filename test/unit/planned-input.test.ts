/** What a plan is made from where no job runs: hosts, their processors and GPUs; and how many variants would be measured here. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { Planner } from '../../control/planner/planner.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { localTables } from '../../launcher/local/host.ts';
import { inputOf, plannedHost, processorsInput, UNKNOWN_HOST } from '../../launcher/plan/engine.ts';
import { candidatesText } from '../../launcher/tune/candidates.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-planned-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

const nothing = { tables: null, busIds: [], host: UNKNOWN_HOST };
const clusterOf = (hosts: number, ranksPerHost: number, system = eightGpus()) =>
  planCluster([{ system, hosts, ranksPerHost }]).cluster;

const peersOf = (hosts: number, environment: Record<string, string>) =>
  inputOf(clusterOf(hosts, 1), environment, nothing).peers.map(({ host, listenPort, device }) => [
    host,
    listenPort,
    device,
  ]);

describe('the input of a plan', () => {
  test('ranks of one host are on its GPUs, whose bus ids are counted where nobody knows them', () => {
    const { hosts, peers, token } = inputOf(clusterOf(1, 2), {}, { ...nothing, busIds: ['7f'] });
    expect(token).toBe('00000000000000000000000000000000');
    expect(hosts).toMatchObject([{ name: 'host0', address: '10.0.0.1', cores: 2, tables: null }]);
    expect(hosts[0]?.machine?.key).toBe('0');
    expect(hosts[0]?.machine?.shape([], false)?.routes.machine.gpus).toHaveLength(2);
    const rank = { host: 0, listenPort: 0, device: 'cuda', cudaDevice: 0, maxChannels: 0, communicators: 0 };
    expect(peers).toEqual([
      { ...rank, busId: '7f', smCount: 132, pidHash: '0' },
      { ...rank, busId: '1', smCount: 132, pidHash: '1' },
    ]);
  });

  test('ranks are on GPUs, and with NCCLRUN_DEVICE=host on processors', () => {
    expect(peersOf(2, {})).toEqual([
      [0, 1, 'cuda'],
      [1, 1, 'cuda'],
    ]);
    expect(peersOf(1, { NCCLRUN_DEVICE: 'host' })).toEqual([[0, 0, 'host']]);
    expect(peersOf(1, { NCCLRUN_DEVICE: 'cuda' })).toEqual([[0, 0, 'cuda']]);
  });

  test('rank ten has the bus id a', () => {
    const { peers } = inputOf(clusterOf(2, 8), {}, nothing);
    expect(peers.map(({ busId }) => busId).join('')).toBe('0123456789abcdef');
  });

  test.each([
    [120, 148],
    [100, 148],
    [99, 132],
    [90, 132],
    [89, 108],
    [80, 108],
    [79, 80],
    [70, 80],
  ])('a GPU of compute capability %i is taken to have %i multiprocessors', (sm, count) => {
    const system = bridgedGpus({ modelid: 85, sm, sockets: 1, gpusPerSocket: 2, count: 1, bridges: [] });
    expect(inputOf(clusterOf(1, 2, system), {}, nothing).peers.map(({ smCount }) => smCount)).toEqual([count, count]);
  });

  test('processors of several hosts have equal shares of the ranks, the first ones one more', () => {
    const { hosts, peers } = processorsInput(5, 2, { ...UNKNOWN_HOST, cores: 4 }, null);
    expect(hosts.map(({ address, cores }) => [address, cores])).toEqual([
      ['10.0.0.1', 4],
      ['10.0.0.2', 4],
    ]);
    expect(peers.map(({ host, device }) => [host, device])).toEqual([0, 0, 0, 1, 1].map((host) => [host, 'host']));
    expect(processorsInput(1, 1, UNKNOWN_HOST, null).peers.map(({ listenPort }) => listenPort)).toEqual([0]);
  });

  test('hosts that one machine plays have one address, others one in each subnet', () => {
    const nic = {
      name: 'eth0',
      address: '192.0.2.1',
      prefixLength: 8,
      speedMbps: 1,
      pciPath: null,
      isVirtual: false,
      isNamed: false,
    };
    const known = { ...UNKNOWN_HOST, nics: [nic, { ...nic, name: 'eth1' }] };
    expect(plannedHost(299, known, 2)).toMatchObject({
      address: '10.0.1.44',
      cores: 2,
      nics: [
        { name: 'eth0', address: '10.0.1.44', prefixLength: 16 },
        { name: 'eth1', address: '10.1.1.44' },
      ],
    });
    expect(plannedHost(299, { ...known, isOneMachine: true }, 2).address).toBe('10.0.0.1');
  });
});

const onProcessors = (hosts: number) => ({ ranks: 4, hosts, hasAggregators: false, device: 'host' });

test('the variants of each collective are counted', async () => {
  vi.stubEnv('XDG_CACHE_HOME', directory);
  const environment = { ...process.env, NCCLRUN_TUNE: 'measure' };
  const tables = await localTables(environment, { used: () => undefined, problem: () => undefined });
  const input = processorsInput(4, 1, { ...UNKNOWN_HOST, cores: availableParallelism() }, tables);
  const { tuning } = new Planner(null, environment).plan(input, true);
  const countOf = (name: string) =>
    tuning.filter(({ collective, upToBytes }) => collective === name && (upToBytes ?? 0) >= 2 ** 40).length;
  const counts = ['allReduce', 'broadcast'].map(countOf);
  expect(Math.min(...counts)).toBeGreaterThan(1);
  expect(await candidatesText(onProcessors(1), ['all_reduce', 'broadcast'])).toBe(
    `variants device host: all_reduce ${counts[0]}, broadcast ${counts[1]}\n`,
  );
  // Between hosts there are rails too, and no protocol LL.
  const between = await candidatesText(onProcessors(2), ['all_reduce']);
  const [, own = ''] = /^variants device host: all_reduce ([1-9]\d*)\n$/u.exec(between) ?? [];
  // Aggregators are one more variant.
  expect(await candidatesText({ ...onProcessors(2), hasAggregators: true }, ['all_reduce'])).toBe(
    `variants device host: all_reduce ${Number(own) + 1}\n`,
  );
  expect(await candidatesText({ ...onProcessors(1), ranks: 100, device: 'auto' }, ['all_reduce'])).toMatch(
    /^variants device host: all_reduce [1-9]\d*\n$/u,
  );
});
