/** Tables of measured times: what they may look like, what planners make of them, and plans for measuring. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { assembleHostPlan, encodePlan } from '../../control/plan/encode.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { CollectiveName, CommPlan, Variant } from '../../control/plan/types.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import { NUMBERED_FROM } from '../../control/planner/measured/candidates.ts';
import { inOrder, layoutOf, tablePath } from '../../control/planner/measured/key.ts';
import type { TableKey } from '../../control/planner/measured/key.ts';
import { findTable, storeTable } from '../../control/planner/measured/store.ts';
import { parseTable, printTable } from '../../control/planner/measured/table.ts';
import type { MeasuredVariant, Table } from '../../control/planner/measured/table.ts';
import { Tables } from '../../control/planner/measured/tables.ts';
import { termsOf, UNKNOWN_RATES } from '../../control/planner/device/between-terms.ts';
import { predictBetween } from '../../control/planner/tuning/between.ts';
import { algorithmsBetween, timeOf } from '../../control/planner/tuning/choices.ts';
import type { TableUse } from '../../control/planner/measured/tables.ts';
import { crossingBytes, timeAt } from '../../control/planner/measured/times.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import { NO_PREFERENCES } from '../../control/planner/input/preferences.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { planText } from '../../launcher/plan/text.ts';
import { viewOf } from '../../launcher/plan/view.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { gpuInput } from '../rig/plans.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ncclrun-measured-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const names = { processor: () => 'Abacus 3', gpu: () => 'NVIDIA H200', driver: () => '570.1' };
const seen = { uses: new Array<TableUse>(), problems: new Array<string>() };

function tables(directory: string, measures = false): Tables {
  seen.uses = [];
  seen.problems = [];
  return new Tables({
    directory,
    names,
    measures,
    used: (use) => seen.uses.push(use),
    problem: (message) => seen.problems.push(message),
  });
}

function hostInput(ranks: number): PlanInput {
  const peer = {
    host: 0,
    listenPort: 0,
    cudaDevice: 0,
    busId: '0',
    smCount: 0,
    maxChannels: 0,
    communicators: 0,
  };
  return {
    hosts: [{ name: 'n0', address: '', cores: 8, machine: null }],
    peers: Array.from({ length: ranks }, (_, rank) => ({ ...peer, device: 'host', pidHash: String(rank) })),
    token: '0'.repeat(32),
  };
}

function planned(input: PlanInput, hostTables: Tables | null, environment: Environment = {}): CommPlan {
  const hosts = input.hosts.map((host) => ({ ...host, tables: hostTables }));
  return new Planner(null, environment).plan({ ...input, hosts }, true);
}

/** What a plan made for measuring says of its table. */
function keyOf(input: PlanInput): TableKey {
  planned(input, tables(scratch, true));
  return parseTable(printTable(tableOf(JSON.parse(seen.uses[0]?.key ?? ''), []))).key;
}

function tableOf(key: TableKey, collectives: Table['collectives']): Table {
  return { formatVersion: 1, key, measuredAt: '2026-01-01T00:00:00Z', version: '0.1.0', collectives };
}

type AlgorithmAndProtocol = Pick<MeasuredVariant, 'algorithm' | 'protocol'> & Partial<MeasuredVariant>;
function measured(variant: AlgorithmAndProtocol, ...times: [number, number][]): MeasuredVariant {
  return { channels: 1, threads: 64, ...variant, times };
}

let stores = 0;
/** A directory with this table. */
function stored(key: TableKey, collective: CollectiveName, variants: MeasuredVariant[]): string {
  const directory = join(scratch, String(stores++));
  storeTable(directory, basename(tablePath(directory, key)), tableOf(key, [{ collective, variants }]));
  return directory;
}

function rows({ tuning }: CommPlan, collective: CollectiveName): string[] {
  return tuning
    .filter((row) => row.collective === collective)
    .map(
      ({ upToBytes, variants }) =>
        `${upToBytes} ${variants.map((variant) => `${variant.algorithm} ${variant.protocol} ${variant.channels}`).join(' | ')}`,
    );
}

const direct = { algorithm: 'directOneShot', protocol: 'simple' } as const;
const ring = { algorithm: 'ring', protocol: 'simple' } as const;
const tree = { algorithm: 'tree', protocol: 'll' } as const;

describe('a table', () => {
  test('findTable finds a table by its key in any order of fields', () => {
    const key = keyOf(hostInput(2));
    expect(key).toMatchObject({ device: 'host', ranks: 2, processor: 'Abacus 3', cores: 8, gpu: null, topology: null });
    const directory = stored(key, 'allReduce', [measured(ring, [8, 1.5])]);
    const backwards: TableKey = Object.assign(
      { driver: null },
      Object.fromEntries(Object.entries(key).toReversed()),
      key,
    );
    expect(tablePath(directory, inOrder(backwards))).toBe(tablePath(directory, key));
    expect(findTable(directory, key)?.table.collectives[0]?.variants).toEqual([measured(ring, [8, 1.5])]);
    expect(findTable(directory, { ...key, cores: 9 })).toBeNull();
    expect(findTable(join(scratch, 'nowhere'), key)).toBeNull();
  });

  test('storeTable keeps the collectives that were not measured again', () => {
    const key = keyOf(hostInput(2));
    const directory = stored(key, 'allReduce', [measured(ring, [8, 1.5])]);
    const add = (collective: CollectiveName, variant: MeasuredVariant): void =>
      storeTable(directory, basename(tablePath(directory, key)), tableOf(key, [{ collective, variants: [variant] }]));
    add('broadcast', measured(tree, [8, 2]));
    add('broadcast', measured(direct, [8, 3]));
    expect(findTable(directory, key)?.table.collectives).toEqual([
      { collective: 'broadcast', variants: [measured(direct, [8, 3])] },
      { collective: 'allReduce', variants: [measured(ring, [8, 1.5])] },
    ]);
    writeFileSync(tablePath(directory, key), '{');
    add('gather', measured(direct, [8, 3]));
    expect(findTable(directory, key)?.table.collectives).toHaveLength(1);
  });

  test('a table has mode 0600 and no other file beside it', () => {
    const directory = stored(keyOf(hostInput(3)), 'allReduce', [measured(ring, [8, 1.5])]);
    const [file = ''] = readdirSync(directory);
    expect(readdirSync(directory)).toHaveLength(1);
    expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  const good = tableOf(keyOf(hostInput(2)), [{ collective: 'allReduce', variants: [measured(ring, [8, 1.5])] }]);
  const broken: readonly (readonly [string, string, string])[] = [
    ['that is truncated', printTable(good).slice(0, 100), 'no JSON'],
    ['of another format', JSON.stringify({ ...good, formatVersion: 2 }), 'formatVersion'],
    ['with an unknown algorithm', printTable(good).replace('"ring"', '"rung"'), 'collectives.0.variants.0.algorithm'],
    ['with decreasing sizes', printTable(good).replace('[8,1.5]', '[8,1.5],[8,2]'), 'sizes must rise'],
    ['with a time of zero', printTable(good).replace('[8,1.5]', '[8,0]'), 'collectives.0.variants.0.times.0.1'],
    ['of another machine', printTable(good).replace('Abacus', 'Babbage'), 'another machine'],
  ];
  test.each(broken)('a table %s is ignored and reported once', (_, text, reason) => {
    const directory = mkdtempSync(join(scratch, 'broken-'));
    writeFileSync(tablePath(directory, good.key), text);
    const plain = planned(hostInput(2), null);
    expect(planned(hostInput(2), tables(directory))).toEqual(plain);
    expect(seen.problems).toHaveLength(1);
    expect(seen.problems[0]).toContain(reason);
    expect(seen.problems[0]).toContain(tablePath(directory, good.key));
    expect(seen.problems[0]).toMatch(/^the table of measured times is ignored: .*; ncclrun tune makes a new one$/u);
  });

  test('a directory in place of a table is ignored', () => {
    const directory = mkdtempSync(join(scratch, 'broken-'));
    mkdirSync(tablePath(directory, good.key));
    planned(hostInput(2), tables(directory));
    expect(seen.problems[0]).toContain('it is not a regular file');
  });

  test('a table that others may change is ignored, and none is stored in an open directory', () => {
    const directory = stored(good.key, 'allReduce', [measured(ring, [8, 1.5])]);
    chmodSync(tablePath(directory, good.key), 0o622);
    planned(hostInput(2), tables(directory));
    expect(seen.problems[0]).toContain(`${tablePath(directory, good.key)}: every user may write to it (mode 0622)`);
    chmodSync(directory, 0o777);
    const store = (): void => storeTable(directory, basename(tablePath(directory, good.key)), good);
    expect(store).toThrow('another user could change it there: every user may write to it (mode 0777)');
  });
});

describe('interpolated times', () => {
  test('timeAt interpolates linearly between sizes and continues at the ends', () => {
    const times = measured(ring, [100, 10], [200, 30], [400, 30]).times;
    expect([50, 100, 150, 200, 300, 800].map((bytes) => timeAt(times, bytes))).toEqual([10, 10, 20, 30, 30, 30]);
    expect(timeAt(measured(ring, [100, 10], [200, 30]).times, 300)).toBe(50);
    expect(timeAt(measured(ring, [100, 10]).times, 300)).toBe(10);
  });

  test('crossing finds the intersection, or the middle if a variant was not measured there', () => {
    const one = measured(ring, [100, 10], [200, 30]).times;
    expect(crossingBytes(one, measured(direct, [100, 20], [200, 20]).times, 100, 200)).toBe(150);
    expect(crossingBytes(one, measured(direct, [400, 20]).times, 100, 400)).toBe(200);
  });
});

describe('a plan from a table', () => {
  const key = keyOf(hostInput(2));
  const plain = planned(hostInput(2), null);

  test('the plan takes the fastest measured variant of each size and keeps its own choice elsewhere', () => {
    const directory = stored(key, 'allReduce', [
      measured(direct, [16, 4], [64, 8], [256, 40]),
      measured(ring, [16, 8], [64, 8.1], [256, 10]),
      measured({ ...ring, channels: 2 }, [1024, 20]),
      measured(ring, [4096, 50]),
    ]);
    const plan = planned(hostInput(2), tables(directory));
    expect(rows(plan, 'allReduce')).toEqual([
      '15 directOneShot ll 1',
      '64 directOneShot simple 1',
      '512 ring simple 1',
      '2048 ring simple 2',
      '4096 ring simple 1',
      '65536 directOneShot simple 1',
      'null directTwoShot simple 1',
    ]);
    expect(plan.channels).toHaveLength(2);
    expect(rows(plan, 'allGather')).toEqual(rows(plain, 'allGather'));
    expect(seen).toMatchObject({ uses: [{ ranks: 2, measured: true, file: tablePath(directory, key) }], problems: [] });
    validatePlan(plan);
  });

  test('the plan predicts the measured times', () => {
    const directory = stored(key, 'allGather', [measured(ring, [1_000_000, 100], [2_000_000, 300])]);
    const row = planned(hostInput(2), tables(directory)).tuning.find(({ upToBytes }) => upToBytes === 2_000_000);
    const [variant] = row?.variants ?? [];
    const { predictedMicroseconds = 0, predictedMicrosecondsPerMebibyte = 0 } = variant ?? {};
    expect(predictedMicroseconds + predictedMicrosecondsPerMebibyte * (2_000_000 / 2 ** 20)).toBeCloseTo(300, -1);
  });

  test('the plan keeps a variant that is as fast as the best', () => {
    const directory = stored(key, 'allReduce', [
      measured(direct, [1024, 10.2], [4096, 10.2]),
      measured(ring, [1024, 10], [4096, 10]),
    ]);
    expect(rows(planned(hostInput(2), tables(directory)), 'allReduce')).toContain('4096 directOneShot simple 1');
  });

  test('the plan obeys NCCL_ALGO, NCCL_PROTO and channel limits', () => {
    const directory = stored(key, 'allReduce', [
      measured(direct, [8, 1], [1024, 1]),
      measured(tree, [8, 2], [1024, 2]),
      measured({ ...ring, channels: 2 }, [8, 3], [1024, 3]),
      measured(ring, [8, 4], [1024, 4]),
    ]);
    const taken = (environment: Environment) =>
      rows(planned(hostInput(2), tables(directory), environment), 'allReduce')[1];
    expect(taken({ NCCL_ALGO: 'ring' })).toBe('1024 ring simple 2');
    expect(taken({ NCCL_ALGO: 'ring', NCCL_MAX_NCHANNELS: '1' })).toBe('1024 ring simple 1');
    expect(taken({ NCCL_PROTO: 'll' })).toBe('1024 tree ll 1');
  });

  test('the plan contains no variant that the engine lacks', () => {
    const directory = stored(key, 'allGather', [
      measured(tree, [8, 1]),
      measured({ ...ring, protocol: 'll128' }, [8, 1]),
    ]);
    expect(rows(planned(hostInput(2), tables(directory)), 'allGather')).toEqual(rows(plain, 'allGather'));
  });

  test('the planner ignores tables of other ranks, cores or hosts', () => {
    const directory = stored(key, 'allReduce', [measured(ring, [8, 1])]);
    expect(planned(hostInput(3), tables(directory))).toEqual(planned(hostInput(3), null));
    const cores = { ...hostInput(2), hosts: hostInput(2).hosts.map((host) => ({ ...host, cores: 1 })) };
    expect(planned(cores, tables(directory))).toEqual(planned(cores, null));
    expect(seen.uses).toEqual([]);
  });
});

/** Two kinds of network and of host, as agents report them. */
function spanning(hosts: number, ranksPerHost: number, { processor = 'Abacus 3', speedMbps = 25_000 } = {}): PlanInput {
  const { peers } = hostInput(hosts * ranksPerHost);
  const nic = { name: 'eth0', prefixLength: 24, speedMbps, pciPath: null, isVirtual: false, isNamed: false };
  return {
    hosts: Array.from({ length: hosts }, (_, host) => ({
      name: `n${host}`,
      address: `10.0.0.${host + 1}`,
      cores: 8,
      machine: null,
      hardware: { processor, gpu: null, driver: null },
      nics: [{ ...nic, address: `10.0.0.${host + 1}` }],
    })),
    peers: peers.map((peer, rank) => ({ ...peer, host: Math.floor(rank / ranksPerHost), listenPort: 1 })),
    token: '0'.repeat(32),
  };
}

const timeOfFirst = ({ tuning }: CommPlan): number => tuning[0]?.variants[0]?.predictedMicroseconds ?? 0;
const algorithmAt = (plan: CommPlan, bytes: number): string | undefined =>
  variantsAt(plan, 'allReduce', bytes)?.[0]?.algorithm;

describe('tables of several hosts', () => {
  const key = keyOf(spanning(2, 2));

  test('the key contains the layout of the ranks and the network', () => {
    expect(key).toMatchObject({
      device: 'host',
      ranks: 4,
      processor: 'Abacus 3',
      cores: 8,
      between: { hosts: 2, layout: '2x2', network: 'Socket', nics: 1, speedMbps: 25_000, isOneMachine: false },
    });
    expect(layoutOf([8, 8, 2, 8])).toBe('2x8 1x2 1x8');
    expect(keyOf(hostInput(4))).not.toHaveProperty('between');
  });

  test('jobs on as many such hosts take the measured variants', () => {
    const directory = stored(key, 'allReduce', [measured(ring, [8, 1], [2 ** 24, 1])]);
    const plan = planned(spanning(2, 2), tables(directory));
    validatePlan(plan);
    expect(rows(plan, 'allReduce')).toContain(`${2 ** 24} ring simple 1`);
    expect(seen.uses).toMatchObject([{ ranks: 4, measured: true }]);
  });

  test.each([
    ['another network', spanning(2, 2, { speedMbps: 100_000 }), {}],
    ['other processors', spanning(2, 2, { processor: 'Babbage 1' }), {}],
    ['one host', hostInput(4), {}],
    ['a plugin', spanning(2, 2), { NCCL_NET_PLUGIN: 'aws-ofi' }],
  ])('the table does not decide for %s', (_, input, environment) => {
    const directory = stored(key, 'allReduce', [measured(ring, [8, 1], [2 ** 24, 1])]);
    expect(planned(input, tables(directory), environment).tuning).toEqual(planned(input, null, environment).tuning);
    expect(seen.uses).toEqual([]);
  });

  test('a table corrects the predicted times of another number of hosts and decides nothing there', () => {
    const thrice = algorithmsBetween('allReduce', 'host', { ranks: 4, hosts: 2, ranksOfEachHost: 2 }).map(
      (algorithm) => {
        const terms = { network: null, corrections: {}, channels: 1, pairChannels: 1, load: 1 } as const;
        const prediction = predictBetween(
          'allReduce',
          algorithm,
          { ranks: 4, hosts: 2 },
          termsOf('host', UNKNOWN_RATES, terms),
        );
        const time = (bytes: number): number => (prediction === null ? 0 : 3 * timeOf({ prediction }, bytes));
        return measured({ algorithm, protocol: 'simple' }, [8, time(8)], [2 ** 26, time(2 ** 26)]);
      },
    );
    const directory = stored(key, 'allReduce', thrice);
    for (const input of [spanning(4, 2), spanning(4, 1), spanning(2, 3)]) {
      const [plain, corrected] = [planned(input, null), planned(input, tables(directory))];
      expect(seen.uses).toEqual([]);
      for (const bytes of [8, 64 * 1024, 2 ** 20, 2 ** 26])
        expect(algorithmAt(corrected, bytes)).toBe(algorithmAt(plain, bytes));
      expect(timeOfFirst(corrected) / timeOfFirst(plain)).toBeCloseTo(3, 1);
    }
  });

  test('a plan for measuring has every algorithm between GPUs of several hosts, under Simple and LL', () => {
    const plan = planned(gpuInput(4, 2), tables(scratch, true));
    validatePlan(plan);
    const numbered = (collective: CollectiveName): Variant[] =>
      plan.tuning.flatMap((row) =>
        row.collective === collective && (row.upToBytes ?? 0) >= NUMBERED_FROM ? row.variants.slice(0, 1) : [],
      );
    expect(new Set(numbered('allReduce').map(({ algorithm }) => algorithm))).toEqual(
      new Set(['ring', 'tree', 'rail', 'directOneShot', 'directTwoShot']),
    );
    expect(new Set(numbered('allReduce').map(({ protocol }) => protocol))).toEqual(new Set(['simple', 'll']));
    const ll = numbered('allReduce').filter(({ protocol }) => protocol === 'll');
    expect(ll.every(({ requires }) => requires.includes('hostSlots'))).toBe(true);
    expect(numbered('allToAll').every(({ asMessages }) => asMessages)).toBe(true);
    const pairChannels = plan.gpuBuffers?.pairChannels ?? 0;
    const direct = numbered('allReduce').filter(({ algorithm }) => algorithm === 'directOneShot');
    expect(Math.max(...direct.map(({ channels }) => channels))).toBe(pairChannels);
  });
});

describe('tables of GPUs', () => {
  const input = gpuInput(8);
  const key = keyOf(input);
  const variants = [
    measured({ algorithm: 'directTwoShot', protocol: 'll128', channels: 16, threads: 512 }, [8, 1], [2 ** 20, 1]),
    measured({ ...ring, channels: 64, threads: 512 }, [2 ** 22, 9], [2 ** 24, 9]),
  ];

  test('the key contains GPU, driver and a hash of the topology', () => {
    expect(key).toMatchObject({
      device: 'cuda',
      ranks: 8,
      gpu: 'NVIDIA H200',
      driver: '570.1',
      processor: null,
      cores: null,
    });
    expect(key.topology).toBe('890310fa6bb8d9d3'); // or tables of earlier versions are not found
    expect(keyOf(gpuInput(4)).topology).not.toBe(key.topology);
  });

  test('a plan for measuring uses no slots of hosts between GPUs of one host', () => {
    const plan = planned(input, tables(scratch, true));
    const all = plan.tuning.flatMap((row) => ((row.upToBytes ?? 0) >= NUMBERED_FROM ? row.variants : []));
    expect(all.some(({ protocol }) => protocol === 'll')).toBe(true);
    expect(all.filter(({ requires }) => requires.includes('hostSlots'))).toEqual([]);
  });

  test('an LL128 variant has a Simple variant to fall back to', () => {
    const plan = planned(input, tables(stored(key, 'allReduce', variants)));
    validatePlan(plan);
    const all = rows(plan, 'allReduce');
    expect(all.some((row) => row.endsWith('directTwoShot ll128 16 | directTwoShot simple 16'))).toBe(true);
    expect(all).toContain(`${2 ** 24} ring simple 64`);
  });

  test("ncclrun plan shows the measured variants and the table's path", () => {
    const { cluster, situation } = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 8 }]);
    const options = {
      collectives: ['allReduce'],
      full: false,
      preferences: NO_PREFERENCES,
      settings: [],
      memory: null,
      situation,
      gids: new Map<string, string>(),
    } as const;
    const found = findTable(stored(key, 'allReduce', variants), key);
    const shown = viewOf(cluster, { ...options, sizes: [8, 2 ** 24, 2 ** 26], table: found });
    const without = viewOf(cluster, { ...options, sizes: [2 ** 26], table: null });
    expect(shown.table).toBe(found?.file);
    expect(shown.tuning[0]).toMatchObject({ algorithm: 'directTwoShot', protocol: 'll128', measuredMicroseconds: 1 });
    expect(shown.tuning[1]).toMatchObject({ algorithm: 'ring', protocol: 'simple', measuredMicroseconds: 9 });
    expect(shown.tuning[2]).toEqual(without.tuning[0]);
    expect(shown.tuning[2]?.measuredMicroseconds).toBeNull();
    expect(planText(shown, false)).toContain(`  measured: ${found?.file}\n`);
    expect(planText(shown, false)).toMatch(/^allReduce +8 +directTwoShot +ll128 +[\d.]+ +1 /mu);
    expect(planText(shown, true)).toMatch(/^allReduce +16777216 .* \S+ simple [\d.]+ \(measured 9\)|directTwoShot/mu);
    expect(planText(without, false)).not.toContain('measured');
  });

  test('a communicator with fewer channels than measured uses those that it has', () => {
    const fewer = { ...input, peers: input.peers.map((peer) => ({ ...peer, maxChannels: 8 })) };
    const plan = planned(fewer, tables(stored(key, 'allReduce', variants)));
    expect(plan.tuning.flatMap((row) => row.variants).every(({ channels }) => channels <= 8)).toBe(true);
  });
});

describe.each([
  ['processors', hostInput(4)],
  ['GPUs', gpuInput(8)],
  ['two GPUs', gpuInput(2)],
])('a plan for measuring, on %s', (_, input) => {
  const plan = planned(input, tables(scratch, true));
  const plain = planned(input, null);

  test('the plan is valid and survives encoding', () => {
    validatePlan(plan);
    expect(decodeHostPlan(encodeHost(plan)).plan.tuning).toHaveLength(plan.tuning.length);
  });

  test('the plan numbers every variant once and includes the planned ones', () => {
    for (const collective of ['allReduce', 'broadcast', 'sendRecv'] as const) {
      const own = plan.tuning.filter((row) => row.collective === collective);
      const numbered = own.filter(({ upToBytes }) => upToBytes !== null && upToBytes >= NUMBERED_FROM);
      expect(numbered.map(({ upToBytes }) => upToBytes)).toEqual(numbered.map((_row, index) => NUMBERED_FROM + index));
      const candidates = new Set(numbered.map(({ variants: [first] }) => nameOf(first)));
      expect(candidates.size).toBe(numbered.length);
      for (const {
        variants: [first],
      } of plain.tuning.filter((row) => row.collective === collective))
        expect(candidates).toContain(nameOf(first));
    }
  });

  test('the plan has the usual variants for small sizes', () => {
    for (const collective of COLLECTIVES) {
      for (let bytes = 1; bytes < NUMBERED_FROM; bytes *= 3)
        expect(variantsAt(plan, collective, bytes)).toEqual(variantsAt(plain, collective, bytes));
    }
  });
});

function variantsAt({ tuning }: CommPlan, name: CollectiveName, bytes: number): readonly Variant[] | undefined {
  return tuning.find(({ collective, upToBytes }) => collective === name && (upToBytes === null || bytes <= upToBytes))
    ?.variants;
}

function encodeHost(plan: CommPlan): Uint8Array {
  const encoded = encodePlan(plan);
  return assembleHostPlan(encoded.body, encoded.host(0).bytes);
}

function nameOf(variant: Variant | undefined): string {
  return `${variant?.algorithm} ${variant?.protocol} ${variant?.channels} ${variant?.threads}`;
}
