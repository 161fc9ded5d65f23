/** `ncclrun plan` prints the variants that engines take. */
import { availableParallelism } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { CollectiveName } from '../../control/plan/types.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { preferencesFrom } from '../../control/planner/input/preferences.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpusByAddress } from '../../control/topology/used-gpus.ts';
import { inputOf, UNKNOWN_HOST } from '../../launcher/plan/engine.ts';
import { measuredHere, thisHost, withFirst } from '../../launcher/plan/measured-here.ts';
import { viewOf } from '../../launcher/plan/view.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

afterEach(() => void vi.unstubAllEnvs());

const shapes = [
  [2, 1],
  [2, 2],
  [2, 8],
  [3, 1],
  [4, 4],
  [9, 8],
  [16, 2],
] as const;
const environments = [
  {},
  { NCCL_ALGO: 'ring,tree' },
  { NCCL_ALGO: '^rail' },
  { NCCL_MAX_NCHANNELS: '4' },
  { NCCL_COLLNET_ENABLE: '1' },
  { NCCL_COLLNET_ENABLE: '1', NCCL_ALGO: 'collnet' },
] as const;
const cases = (['cuda', 'host'] as const).flatMap((device) =>
  shapes.flatMap(([hosts, ranksPerHost]) =>
    environments.map((variables) => {
      const name = `${hosts} hosts of ${ranksPerHost} ranks on ${device} with ${JSON.stringify(variables)}`;
      return { name, device, hosts, ranksPerHost, variables };
    }),
  ),
);
const sizes = Array.from({ length: 30 }, (_, power) => 2 ** power);

describe.each([false, true])('hosts that one machine plays: %s', (isOneMachine) => {
  it.each(cases)(
    '$name take the variants that ncclrun plan prints',
    async ({ device, hosts, ranksPerHost, variables }) => {
      for (const [name, value] of Object.entries({ ...variables, NCCLRUN_DEVICE: device })) vi.stubEnv(name, value);
      const preferences = preferencesFrom(process.env);
      const planned = planCluster([{ system: eightGpus(), hosts, ranksPerHost }]);
      const here = await measuredHere(planned, { system: null, isOneMachine, preferences });
      const collectives = COLLECTIVES.filter((name) => name !== 'barrier');
      const options = {
        full: false,
        settings: [],
        memory: null,
        table: null,
        gids: new Map<string, string>(),
        preferences,
      } as const;
      const { tuning } = viewOf(planned.cluster, { ...options, collectives, sizes, situation: here.situation });
      const known = { tables: null, busIds: [], host: { ...UNKNOWN_HOST, isOneMachine } };
      const plan = new Planner(null, process.env).plan(inputOf(planned.cluster, process.env, known), true);
      const taken = (collective: CollectiveName, bytes: number): string | undefined =>
        plan.tuning.find((row) => row.collective === collective && (row.upToBytes === null || row.upToBytes >= bytes))
          ?.variants[0]?.algorithm;
      expect(tuning).toHaveLength(collectives.length * sizes.length);
      const differing = tuning.filter(({ collective, bytes, algorithm }) => taken(collective, bytes) !== algorithm);
      expect(differing.map(({ collective, bytes, algorithm }) => `${collective} ${bytes} ${algorithm}`)).toEqual([]);
    },
  );
});

it('the predicted bus bandwidth is the one that nccl-tests would print for the predicted time', async () => {
  const preferences = preferencesFrom({});
  const planned = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 4 }]);
  const { situation } = await measuredHere(planned, { system: null, isOneMachine: false, preferences });
  const bytes = 2 ** 26;
  const collectives = COLLECTIVES.filter((name) => name !== 'barrier');
  const options = {
    full: false,
    settings: [],
    memory: null,
    table: null,
    gids: new Map<string, string>(),
    preferences,
  };
  const { tuning } = viewOf(planned.cluster, { ...options, collectives, sizes: [bytes], situation });
  const factors = tuning.map(({ collective, predictedBusBw, predictedMicroseconds }) => [
    collective,
    Number(((predictedBusBw * predictedMicroseconds * 1000) / bytes).toFixed(2)),
  ]);
  expect(Object.fromEntries(factors)).toEqual({
    allReduce: 1.5,
    allGather: 0.75,
    reduceScatter: 0.75,
    allToAll: 0.75,
    gather: 0.75,
    scatter: 0.75,
    broadcast: 1,
    reduce: 1,
    sendRecv: 1,
  });
});

it('the NIC of the address at which others reach this machine comes first', () => {
  const nics = ['a', 'b', null, 'c'].map((address) => ({ address }));
  const first = (address: string | null) => withFirst(nics, address).map((nic) => nic.address);
  expect(first('b')).toEqual(['b', 'a', null, 'c']);
  expect(first('d')).toEqual(['a', 'b', null, 'c']);
});

describe('what this machine has measured', () => {
  const planned = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 8 }]);

  it('its tables and the addresses of its GPUs count where the plan is for this machine', async () => {
    vi.stubEnv('NCCLRUN_TUNE', 'measure');
    const preferences = preferencesFrom(process.env);
    const system = eightGpus();
    const here = await measuredHere(planned, { system, isOneMachine: true, preferences });
    expect(here.tables).not.toBeNull();
    expect(here.host).toEqual({ ...UNKNOWN_HOST, isOneMachine: true });
    const addresses = [...gpusByAddress(system).keys()].map((address) => address.toString(16));
    expect(here.busIds.toSorted()).toEqual(addresses.toSorted());
    const elsewhere = await measuredHere(planned, { system: null, isOneMachine: true, preferences });
    expect([elsewhere.tables, elsewhere.busIds]).toEqual([null, []]);
  });

  it('its network counts where the plan is for several hosts like it', async () => {
    const several = planCluster([{ system: eightGpus(), hosts: 2, ranksPerHost: 8 }]);
    const preferences = preferencesFrom(process.env);
    const here = await measuredHere(several, { system: eightGpus(), isOneMachine: true, preferences });
    expect(here.host).toEqual(thisHost(true));
    expect(here.host).toMatchObject({ isOneMachine: true, cores: availableParallelism() });
  });
});
