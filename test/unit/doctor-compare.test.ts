/** What doctor tells of the time since an earlier run, and which run that is. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HostReadings } from '../../control/readings.ts';
import { changesBetween, isForTheWorse } from '../../launcher/doctor/compare.ts';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { keepRun, parseRun, runBefore, timeOf } from '../../launcher/doctor/kept.ts';
import type { MeasuredWay } from '../../launcher/doctor/pairs.ts';
import { changesText } from '../../launcher/doctor/text.ts';
import { documentOf, type Examined } from '../../launcher/doctor/verdict.ts';
import { wellGpu, wellHost, wellInterface, wellPci, wellPort } from '../rig/readings.ts';

const finding = (changes: Partial<Finding>): Finding => ({
  check: 'cpu.load',
  answer: 'warn',
  host: 'a',
  subject: '',
  message: 'busy',
  remedy: 'wait',
  ...changes,
});

const run = (findings: Finding[], readings: HostReadings = wellHost(), ways: MeasuredWay[] = []) => ({
  hosts: ['a', 'b'],
  findings,
  ways,
  readings: { a: readings },
});
const texts = (changes: ReturnType<typeof changesBetween>) =>
  changes.map(({ kind, host, message }) => `${kind} ${host}: ${message}`);

const examined = (takenAt: number, hosts = ['a']): Examined => ({
  takenAt,
  hosts,
  read: [{ name: 'a', readings: wellHost() }],
  findings: [finding({})],
  ways: [],
});

const plain = (_style: string, text: string): string => text;

const way = (rate: number | null, waited = 0) => [
  { from: 'a', to: 'b', rail: 0, rate, latencyUs: 1, lost: 0, waited, error: null },
];

/** Three hosts whose monotonic clocks show these milliseconds. */
const clocked = (times: readonly [number, number, number]) => ({
  hosts: ['a', 'b', 'c'],
  findings: [],
  ways: [],
  readings: Object.fromEntries(
    times.map((monotonic, index) => ['abc'.charAt(index), wellHost({ clock: { ...wellHost().clock, monotonic } })]),
  ),
});

const between = (then: MeasuredWay[], now: MeasuredWay[]) =>
  texts(changesBetween(run([], wellHost(), then), run([], wellHost(), now)));

describe('the changes', () => {
  it('doctor lists findings that are new, worse and gone, without hosts that were not there', () => {
    const before = run([finding({}), finding({ check: 'x' }), finding({ check: 'y', answer: 'note' })]);
    const now = run([
      finding({ answer: 'fail', message: 'very busy' }),
      finding({ check: 'y', subject: 'eth0' }),
      finding({ check: 'z', host: 'c' }),
      finding({ check: 'y', answer: 'ok', message: '' }),
    ]);
    const changes = changesBetween(before, { ...now, hosts: ['a', 'b', 'c'] });
    expect(texts(changes)).toEqual([
      'worse a: fail cpu.load: very busy (it was: warn)',
      'new a: warn y eth0: busy',
      'gone a: warn x: busy',
    ]);
    expect(changes.map(isForTheWorse)).toEqual([true, true, false]);
    expect(changesBetween(before, before)).toEqual([]);
  });

  it('doctor lists counters that grew, but not across a restart of the host', () => {
    const after = {
      interfaces: [wellInterface({ receiveErrors: 2, carrierChanges: 3 })],
      infiniband: [wellPort({ counters: { symbol_error: 7, link_downed: 2, out_of_sequence: 5 } })],
      pci: [wellPci({ correctableErrors: 9 })],
    };
    const { gpus } = wellHost();
    const devices = (gpus.devices ?? []).map((gpu, index) =>
      index === 1 ? wellGpu({ ...gpu, remappedRows: 1 }) : gpu,
    );
    const grown = changesBetween(run([]), run([], wellHost({ ...after, gpus: { ...gpus, devices } })));
    expect(texts(grown)).toEqual([
      'grew a: eth0: errors by 2',
      'grew a: eth0: changes of the link by 1',
      'grew a: mlx5_0 port 1: symbol_error by 7',
      'grew a: mlx5_0 port 1: link_downed by 1',
      'grew a: NIC 0000:17:00.0: corrected errors of PCIe by 9',
      'grew a: GPU 1 (01:00.0): remapped rows by 1',
    ]);
    const restarted = wellHost({ ...after, system: { ...wellHost().system, bootId: 'c' } });
    expect(texts(changesBetween(run([]), run([], restarted)))).toEqual(['changed a: start of the host: c, it was b']);
  });

  it('doctor lists drivers, firmware and parts that come and go', () => {
    const { gpus } = wellHost();
    const devices = (gpus.devices ?? []).slice(0, 3);
    const now = wellHost({
      infiniband: [wellPort({ firmware: '28.40' })],
      gpus: { ...gpus, driver: '580.2', devices },
    });
    const changes = texts(changesBetween(run([]), run([], now)));
    expect(changes).toContain('changed a: NVIDIA driver: 580.2, it was 570.1');
    expect(changes).toContain('changed a: firmware of mlx5_0: 28.40, it was 28.39');
    expect(changes).toContain('changed a: GPU 03:00.0: none, it was NVIDIA H100');
  });

  it('doctor lists a pair that became slower, unless its hosts were busy', () => {
    expect(between(way(10), way(6))).toEqual(['slower null: a to b: 6.00 GB/s, it was 10.0 GB/s']);
    expect(between(way(10), way(7))).toEqual([]);
    expect(between(way(10), way(3, 0.4))).toEqual([]);
    expect(between(way(10), way(null))).toEqual([]);
    expect(between([], way(1))).toEqual([]);
  });

  it('a monotonic clock that runs at another speed is listed once days have passed', () => {
    const day = 86_400_000;
    const after = (days: number, offMs: number) =>
      texts(changesBetween(clocked([0, 5, 10]), clocked([days * day, days * day + 5, days * day + offMs])));
    expect(after(1, 28_000)).toEqual([]);
    expect(after(1, 30_000)).toEqual(['changed c: its monotonic clock runs 347 ppm faster than those of the others']);
    expect(after(1, -30_000)).toEqual(['changed c: its monotonic clock runs 347 ppm slower than those of the others']);
  });

  it('people read each change in a line', () => {
    expect(changesText([], 0, plain)).toBe('since 1970-01-01 00:00 UTC: nothing has changed\n');
    expect(changesText([{ kind: 'new', host: 'a', message: 'x\u001b' }], 0, plain)).toMatch(/:\n {2}new {5}a x\S*\n$/u);
  });
});

describe('kept runs', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'ncclrun-kept-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('a run is found again by its time and hosts, with its readings', () => {
    for (const time of [1000, 2000, 3000]) keepRun(directory, examined(time), 1, 1);
    keepRun(directory, examined(4000, ['z']), 1, 0);
    writeFileSync(join(directory, '9.json'), 'nonsense');
    expect(runBefore(directory, ['a', 'b'], 9000)?.takenAt).toBe(3000);
    expect(runBefore(directory, ['a'], 2500)?.takenAt).toBe(2000);
    expect(runBefore(directory, ['a'], 10)?.takenAt).toBe(1000);
    expect(runBefore(directory, ['q'], 9000)).toBeNull();
    expect(runBefore(join(directory, 'none'), ['a'], 9000)).toBeNull();
    expect(runBefore(directory, ['a'], 9000)?.readings['a']).toEqual(wellHost());
  });

  it('old runs are removed, and nobody else reads them', () => {
    for (let time = 1; time <= 102; time++) keepRun(directory, examined(time * 1000), 1, 0);
    const names = readdirSync(directory).toSorted();
    expect(names).toHaveLength(100);
    expect(names[0]).toContain('1970-01-01T00-00-03.000Z');
    expect(statSync(join(directory, names[0] ?? '')).mode & 0o777).toBe(0o600);
  });

  it('what --json has printed is a run, without readings', () => {
    const document = documentOf(examined(5), 1, 0);
    expect(parseRun(JSON.stringify(document))).toMatchObject({ takenAt: 5, readings: {} });
    expect(parseRun('{}')).toBeNull();
    expect(parseRun('nonsense')).toBeNull();
  });

  it('times are said as spans and dates', () => {
    expect(timeOf('last', 7)).toBe(7);
    expect(timeOf('2h', 8_000_000)).toBe(800_000);
    expect(timeOf('1w', 604_800_000)).toBe(0);
    expect(timeOf('1970-01-02', 0)).toBe(86_400_000);
    for (const text of ['run.json', '5', '2y', '', '1970-99-99']) expect(timeOf(text, 0)).toBeNull();
  });
});
