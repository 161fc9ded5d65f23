/** What a plan is made from where no job runs: hosts, their processors and GPUs; and how many variants would be measured here. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { localTables } from '../../launcher/local/host.ts';
import { inputOf, processorsPlan } from '../../launcher/plan/engine.ts';
import { candidatesText } from '../../launcher/tune/candidates.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-planned-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

const nothing = { tables: null, busIds: [] };
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
    const { hosts, peers, token } = inputOf(clusterOf(1, 2), {}, { tables: null, busIds: ['7f'] });
    expect(token).toBe('00000000000000000000000000000000');
    expect(hosts).toMatchObject([{ name: 'host0', address: '127.0.0.1', cores: 2, tables: null }]);
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

  test('a plan for processors has one host', () => {
    const { device, hosts, peers } = processorsPlan(3, 4, {}, null);
    expect([device, hosts.length, peers.length]).toEqual(['host', 1, 3]);
    expect(peers.map(({ host, listenPort }) => [host, listenPort])).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });
});

test('the variants of each collective are counted', async () => {
  vi.stubEnv('XDG_CACHE_HOME', directory);
  const environment = { ...process.env, NCCLRUN_TUNE: 'measure' };
  const tables = await localTables(environment, { used: () => undefined, problem: () => undefined });
  const { tuning } = processorsPlan(4, availableParallelism(), environment, tables);
  const countOf = (name: string) =>
    tuning.filter(({ collective, upToBytes }) => collective === name && (upToBytes ?? 0) >= 2 ** 40).length;
  const counts = ['allReduce', 'broadcast'].map(countOf);
  expect(Math.min(...counts)).toBeGreaterThan(1);
  expect(await candidatesText(4, 'host', ['all_reduce', 'broadcast'])).toBe(
    `variants device host: all_reduce ${counts[0]}, broadcast ${counts[1]}\n`,
  );
  expect(await candidatesText(100, 'auto', ['all_reduce'])).toMatch(/^variants device host: all_reduce [1-9]\d*\n$/u);
});
