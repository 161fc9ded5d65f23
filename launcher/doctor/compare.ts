/** What has changed between two runs of doctor: findings, versions, counters that grew, pairs that became slower. */
import type { HostReadings } from '../../control/readings.ts';
import { answers, type Finding } from './finding.ts';
import { grownCounters } from './grown-counters.ts';
import type { KeptRun } from './kept.ts';
import { isSameWay, unhinderedRate, type MeasuredWay } from './pairs.ts';

export interface Change {
  /** `changed` may be as well for the better. */
  readonly kind: 'new' | 'worse' | 'grew' | 'slower' | 'changed' | 'gone';
  readonly host: string | null;
  readonly message: string;
}

/** Two readings of one host. */
interface Twice {
  readonly host: string;
  readonly earlier: HostReadings;
  readonly later: HostReadings;
}

type Run = Pick<KeptRun, 'hosts' | 'findings' | 'ways' | 'readings'>;

/** Of the rate before. */
const SLOWER = 0.7;
/** Parts of a second per second: no crystal that works is off by more. */
const MAX_DRIFT = 1e-4;
/** Hosts of one run are read within this time of each other. */
const READ_WITHIN_MS = 10_000;
/** Ends that had no processor for so much of the time tell little. */
const MAX_WAITED = 0.3;

/** Of hosts that both have. The worst first. */
export function changesBetween(before: Run, now: Run): Change[] {
  const both = now.hosts.filter((host) => before.hosts.includes(host));
  const ofBoth = ({ host }: Finding) => host === null || both.includes(host);
  const readings = both.flatMap((host) => {
    const [earlier, later] = [before.readings[host], now.readings[host]];
    return earlier === undefined || later === undefined ? [] : [{ host, earlier, later }];
  });
  return [
    ...findingChanges(before.findings.filter(ofBoth), now.findings.filter(ofBoth)),
    ...readings.flatMap(({ host, earlier, later }) => counterChanges(host, earlier, later)),
    ...slowerWays(before.ways, now.ways),
    ...readings.flatMap(({ host, earlier, later }) => factChanges(host, earlier, later)),
    ...clockChanges(readings),
    ...goneFindings(before.findings.filter(ofBoth), now.findings.filter(ofBoth)),
  ];
}

export function isForTheWorse({ kind }: Change): boolean {
  return kind !== 'gone' && kind !== 'changed';
}

const keyOf = ({ check, host, subject }: Finding): string => JSON.stringify([check, host, subject]);
const isBad = ({ answer }: Finding): boolean => answer !== 'ok' && answer !== 'note';
const textOf = ({ answer, check, subject, message }: Finding): string =>
  `${answer} ${check}${subject === '' ? '' : ` ${subject}`}: ${message}`;

function findingChanges(before: readonly Finding[], now: readonly Finding[]): Change[] {
  const known = new Map(before.filter(isBad).map((finding) => [keyOf(finding), finding]));
  return now.filter(isBad).flatMap((finding): Change[] => {
    const then = known.get(keyOf(finding));
    const { host } = finding;
    if (then === undefined) return [{ kind: 'new', host, message: textOf(finding) }];
    const isWorse = answers.indexOf(finding.answer) < answers.indexOf(then.answer);
    return isWorse ? [{ kind: 'worse', host, message: `${textOf(finding)} (it was: ${then.answer})` }] : [];
  });
}

function goneFindings(before: readonly Finding[], now: readonly Finding[]): Change[] {
  const left = new Set(now.filter(isBad).map(keyOf));
  return before
    .filter((finding) => isBad(finding) && !left.has(keyOf(finding)))
    .map((finding) => ({ kind: 'gone', host: finding.host, message: textOf(finding) }));
}

/** A restart sets counters to 0. */
function counterChanges(host: string, earlier: HostReadings, later: HostReadings): Change[] {
  if (earlier.system.bootId !== later.system.bootId) return [];
  return grownCounters(earlier, later).map(({ subject, name, by }) => ({
    kind: 'grew',
    host,
    message: `${subject}: ${name} by ${by}`,
  }));
}

function slowerWays(before: readonly MeasuredWay[], now: readonly MeasuredWay[]): Change[] {
  return now.flatMap((way) => {
    const then = before.find((one) => isSameWay(one, way));
    if (then === undefined || Math.max(then.waited, way.waited) > MAX_WAITED) return [];
    const [was, is] = [unhinderedRate(then), unhinderedRate(way)];
    if (was === null || is === null || is >= SLOWER * was) return [];
    const message = `${way.from} to ${way.to}: ${is.toPrecision(3)} GB/s, it was ${was.toPrecision(3)} GB/s`;
    return [{ kind: 'slower', host: null, message }];
  });
}

/** What stays as it is until somebody changes it, or something breaks: by name, so that what comes and goes is seen. */
function factsOf(readings: HostReadings): ReadonlyMap<string, string> {
  const { system, processors, limits, gpus, infiniband, pci, interfaces, version } = readings;
  const facts: (readonly [string, string | number | boolean | null])[] = [
    ['ncclrun', version],
    ['start of the host', system.bootId.slice(0, 8)],
    ['kernel', system.kernel],
    ['distribution', system.distribution],
    ['processors', processors.online],
    ['locked memory at most', limits.lockedMemoryBytes],
    ['open files at most', limits.openFiles],
    ['NVIDIA driver', gpus.driver],
    ['GPUs', gpus.devices?.length ?? null],
    ...(gpus.devices ?? []).flatMap(({ busId, name, vbios, powerLimitWatts, activeNvlinks, eccEnabled }) => [
      [`GPU ${busId}`, name] as const,
      [`VBIOS of GPU ${busId}`, vbios] as const,
      [`power limit of GPU ${busId}`, powerLimitWatts] as const,
      [`NVLinks of GPU ${busId}`, activeNvlinks] as const,
      [`error correction of GPU ${busId}`, eccEnabled] as const,
    ]),
    ...infiniband.flatMap(({ card, port, firmware, rateMbps, state }) => [
      [`firmware of ${card}`, firmware] as const,
      [`rate of ${card} port ${port} in Mb/s`, rateMbps] as const,
      [`state of ${card} port ${port}`, state] as const,
    ]),
    ...pci.map(({ address, width }) => [`PCIe lanes of ${address}`, width] as const),
    ...interfaces.flatMap(({ name, mtu, speedMbps }) => [
      [`MTU of ${name}`, mtu] as const,
      [`speed of ${name} in Mb/s`, speedMbps] as const,
    ]),
  ];
  return new Map(facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, String(value)]])));
}

function factChanges(host: string, earlier: HostReadings, later: HostReadings): Change[] {
  const [before, now] = [factsOf(earlier), factsOf(later)];
  return [...new Set([...before.keys(), ...now.keys()])].flatMap((name) => {
    const [was, is] = [before.get(name) ?? 'none', now.get(name) ?? 'none'];
    return was === is ? [] : [{ kind: 'changed' as const, host, message: `${name}: ${is}, it was ${was}` }];
  });
}

/** Hosts whose monotonic clock runs at another speed than those of most. Their readings are not simultaneous, so only days show that. */
function clockChanges(readings: readonly Twice[]): Change[] {
  const passed = readings.flatMap(({ host, earlier, later }) => {
    const [was, is] = [earlier.clock.monotonic, later.clock.monotonic];
    return was === null || is === null || earlier.system.bootId !== later.system.bootId ? [] : [{ host, ms: is - was }];
  });
  const usual = passed.map(({ ms }) => ms).toSorted((one, other) => one - other)[passed.length >> 1] ?? 0;
  if (passed.length < 3) return [];
  return passed.flatMap(({ host, ms }): Change[] => {
    const off = ms - usual;
    if (Math.abs(off) <= 2 * READ_WITHIN_MS + MAX_DRIFT * usual) return [];
    const message = `its monotonic clock runs ${Math.round((Math.abs(off) / usual) * 1e6)} ppm ${off > 0 ? 'faster' : 'slower'} than those of the others`;
    return [{ kind: 'changed', host, message }];
  });
}
