/** Measured times of all-reduces by the network: what `ncclrun tune` measures, and what plans make of it where links are slower than their NICs say. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { validatePlan } from '../../control/plan/validate.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { NUMBERED_FROM } from '../../control/planner/measured/candidates.ts';
import { tablePath } from '../../control/planner/measured/key.ts';
import type { TableKey } from '../../control/planner/measured/key.ts';
import { storeTable } from '../../control/planner/measured/store.ts';
import { parseTable, printTable } from '../../control/planner/measured/table.ts';
import type { MeasuredVariant } from '../../control/planner/measured/table.ts';
import { Tables } from '../../control/planner/measured/tables.ts';
import { Planner } from '../../control/planner/planner.ts';
import { aggregatorsAt, processorsInput, UNKNOWN_HOST } from '../../launcher/plan/engine.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ncclrun-measured-collnet-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const further: AggregatorPlace = { place: 'other', name: 'h9', speedMbps: 10_000 };
const onFirst: AggregatorPlace = { place: 'member', host: 0 };

/** Interfaces that say 10 Gb/s, whatever the way between them carries. */
function input(hosts: number, aggregators: readonly AggregatorPlace[]): PlanInput {
  const nic = {
    name: 'eth0',
    address: '192.0.2.1',
    prefixLength: 8,
    speedMbps: 10_000,
    pciPath: null,
    isVirtual: true,
    isNamed: false,
  };
  const hardware = { processor: 'Abacus 3', gpu: null, driver: null };
  const known = { ...UNKNOWN_HOST, cores: 8, hardware, nics: [nic] };
  return { ...processorsInput(hosts, hosts, known, null), aggregators: aggregatorsAt(aggregators) };
}

let key = '';
function tables(directory: string, measures: boolean): Tables {
  return new Tables({
    directory,
    names: { processor: () => null, gpu: () => null, driver: () => null },
    measures,
    used: (use) => (key = use.key),
    problem: (message) => expect(message).toBe(''),
  });
}

function planned(from: PlanInput, directory: string, environment: Environment = {}, measures = false): CommPlan {
  const hosts = from.hosts.map((host) => ({ ...host, tables: tables(directory, measures) }));
  const plan = new Planner(null, environment).plan({ ...from, hosts }, true);
  validatePlan(plan);
  return plan;
}

function keyOf(from: PlanInput): TableKey {
  planned(from, scratch, {}, true);
  return parseTable(
    printTable({ formatVersion: 1, key: JSON.parse(key), measuredAt: '', version: '', collectives: [] }),
  ).key;
}

let stores = 0;
/** A directory with what was measured there of all-reduces. */
function stored(from: PlanInput, ...variants: MeasuredVariant[]): string {
  const directory = join(scratch, String(stores++));
  const own = keyOf(from);
  storeTable(directory, basename(tablePath(directory, own)), {
    formatVersion: 1,
    key: own,
    measuredAt: '2026-01-01T00:00:00Z',
    version: '0.1.0',
    collectives: [{ collective: 'allReduce', variants }],
  });
  return directory;
}

function measured(algorithm: MeasuredVariant['algorithm'], ...times: [number, number][]): MeasuredVariant {
  return { algorithm, protocol: 'simple', channels: 1, threads: 64, times };
}

function rows({ tuning }: CommPlan): string[] {
  return tuning
    .filter(({ collective }) => collective === 'allReduce')
    .map(({ upToBytes, variants }) => `${upToBytes} ${variants.map(({ algorithm }) => algorithm).join(' | ')}`);
}

/** A ring and the network over links of 300 Mb/s, with an aggregator whose link is fast. */
const slow = [
  measured('ring', [8, 110], [2 ** 20, 42_000], [2 ** 26, 2_690_000]),
  measured('collnet', [8, 130], [2 ** 20, 28_500], [2 ** 26, 1_820_000]),
];

describe('ncclrun tune', () => {
  it('ncclrun tune measures the variant of the network, and what replaces it where the network does not reduce', () => {
    const { tuning } = planned(input(4, [further]), scratch, {}, true);
    const numbered = tuning.filter(({ upToBytes }) => upToBytes !== null && upToBytes >= NUMBERED_FROM);
    const found = numbered.filter(({ variants }) => variants[0]?.algorithm === 'collnet');
    expect(found.map(({ collective, variants }) => [collective, ...variants.map(({ requires }) => requires)])).toEqual([
      ['allReduce', ['networkReduction'], []],
    ]);
  });

  it('ncclrun tune measures no such variant where no network reduces', () => {
    const { tuning } = planned(input(4, []), scratch, {}, true);
    expect(tuning.some(({ variants }) => variants.some(({ algorithm }) => algorithm === 'collnet'))).toBe(false);
  });

  it('ncclrun tune stores times for who reduced, and for nobody else', () => {
    const names = [[], [further], [onFirst]].map((aggregators) => keyOf(input(4, aggregators)).between?.reduction);
    expect(names).toEqual([undefined, 'aggregators other 10000', 'aggregators host 0']);
  });
});

describe('plans with measured times', () => {
  it('a plan takes the network where it was faster, though its link is no faster than those of the hosts by what NICs say', () => {
    const from = input(4, [further]);
    expect(rows(planned(from, join(scratch, 'none')))).not.toContainEqual(expect.stringContaining('collnet'));
    const directory = stored(from, ...slow);
    const found = rows(planned(from, directory));
    expect(found).toContainEqual(expect.stringMatching(/^\d+ ring$/u));
    expect(found).toContainEqual(expect.stringMatching(/^67108864 collnet \| (?!collnet)/u));
    expect(rows(planned(from, directory, { NCCL_ALGO: 'ring' })).join()).not.toContain('collnet');
  });

  it('a plan takes a ring where the network was slower, though the NICs promise the contrary', () => {
    const fast: AggregatorPlace = { ...further, speedMbps: 100_000 };
    const from = input(4, [fast]);
    const environment = { NCCL_ALGO: 'ring,collnet' };
    expect(rows(planned(from, join(scratch, 'none'), environment))).toContainEqual(
      expect.stringContaining('collnet |'),
    );
    const [ring, byNetwork] = slow;
    const directory = stored(
      from,
      { ...measured('ring'), times: byNetwork?.times ?? [] },
      { ...measured('collnet'), times: ring?.times ?? [] },
    );
    expect(rows(planned(from, directory, environment)).filter((row) => row.startsWith('67108864'))).toEqual([
      '67108864 ring',
    ]);
  });

  it('a plan corrects the model by what more hosts took, and by another way of reducing only what the ranks did there', () => {
    // A ring of 8 hosts took ten times what the model says: 1.75 bytes of each, of which the NIC carries 1250 in a microsecond.
    const bytes = 2 ** 26;
    const times: [number, number][] = [[bytes, (10 * bytes * 1.75) / 1250]];
    const predictions = (directory: string): readonly (readonly [string, number])[] =>
      planned(input(4, [further]), directory, { NCCL_ALGO: 'collnet' })
        .tuning.filter(({ collective, upToBytes }) => collective === 'allReduce' && upToBytes === null)
        .flatMap(({ variants }) =>
          variants.map((one) => [one.algorithm, one.predictedMicrosecondsPerMebibyte] as const),
        );
    const plain = predictions(join(scratch, 'none'));
    const elsewhere = stored(input(8, [onFirst]), measured('ring', ...times), measured('collnet', [bytes, bytes]));
    const alone = stored(input(8, []), measured('ring', ...times));
    for (const directory of [elsewhere, alone]) {
      const ratios = predictions(directory).map(([, time], index) => time / (plain[index]?.[1] ?? 0));
      for (const ratio of ratios) expect(ratio).toBeCloseTo(10, 1);
    }
    // The aggregator's link carries 4 bytes of each: 4 ÷ 1250. With 8 hosts it took twenty times as long as the model says.
    const same = stored(
      input(8, [further]),
      measured('ring', ...times),
      measured('collnet', [bytes, (20 * bytes * 8) / 1250]),
    );
    const [byNetwork, other] = predictions(same).map(([, time], index) => time / (plain[index]?.[1] ?? 0));
    expect(byNetwork).toBeCloseTo(20, 1);
    expect(other).toBeCloseTo(10, 1);
  });
});
