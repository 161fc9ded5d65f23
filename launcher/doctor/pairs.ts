/** Which host, NIC or path is slow, from the times between hosts: a host that is slow with all others is to blame, not they. */
import type { Finding } from './finding.ts';
import { SLOW, type HostPair } from './rounds.ts';

/** Ways of a host that are slow, of all that it has, for it to be blamed. */
const MOST = 0.75;
/** A link that carries data loses no packet. */
const MAX_LOST = 0.005;
const TIMES_OTHERS = 3;
/** Where the hosts of a way waited longer for processors, it is called slow only if it is that slow, as parts of the median. */
const MAX_WAITED = 0.3;
const CLEARLY_SLOW = 0.125;
/** More of the time that was waited is not taken off: little would be left to judge by. */
const MAX_TAKEN_OFF = 0.9;
/** Ways that are named one by one. */
const MAX_WAYS = 8;

/** One way between a NIC of each of two hosts. */
export interface MeasuredWay {
  readonly from: string;
  readonly to: string;
  /** Number of the NIC at both ends. */
  readonly rail: number;
  /** GB/s; null: it failed, and `error` says why. */
  readonly rate: number | null;
  /** Of 8 bytes. */
  readonly latencyUs: number | null;
  /** Part of the packets that were sent again for a reason; null: nobody counts. */
  readonly lost: number | null;
  /** Part of the time in which one of its hosts had no processor for the measurement. */
  readonly waited: number;
  readonly error: string | null;
}

interface BadWays {
  readonly usualRate: number;
  readonly usualLost: number;
  readonly failed: readonly MeasuredWay[];
  readonly slow: readonly MeasuredWay[];
  readonly lossy: readonly MeasuredWay[];
  /** Slow, but their hosts had too little time for the measurement. */
  readonly unclear: readonly MeasuredWay[];
}

function badWays(ways: readonly MeasuredWay[]): BadWays {
  const usualRate = middle(ways.flatMap((way) => unhinderedRate(way) ?? []));
  const usualLost = middle(ways.flatMap((way) => way.lost ?? []));
  const maxLost = Math.max(MAX_LOST, TIMES_OTHERS * usualLost);
  const lossy = ways.filter((way) => (way.lost ?? 0) > maxLost);
  const slow = ways.filter((way) => (unhinderedRate(way) ?? usualRate) < SLOW * usualRate);
  const isClear = (way: MeasuredWay) =>
    way.waited <= MAX_WAITED || (unhinderedRate(way) ?? 0) < CLEARLY_SLOW * usualRate;
  return {
    usualRate,
    usualLost,
    failed: ways.filter(({ rate }) => rate === null),
    slow: slow.filter(isClear),
    // Losses come by chance: where one way has many, half as many on another tell whose they are.
    lossy: lossy.length === 0 ? [] : ways.filter((way) => (way.lost ?? 0) > Math.max(maxLost / 2, 2 * usualLost)),
    unclear: slow.filter((way) => !isClear(way)),
  };
}

/** GB/s as if its hosts had always had a processor for it. Null: it failed. */
export function unhinderedRate({ rate, waited }: MeasuredWay): number | null {
  return rate === null ? null : rate / (1 - Math.min(waited, MAX_TAKEN_OFF));
}

function middle(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
}

/** Pairs that are measured once more before anybody is told: a busy moment makes a pair slow, and lose packets. */
export function doubtfulPairs(ways: readonly MeasuredWay[]): HostPair[] {
  const { failed, slow, lossy, unclear } = badWays(ways);
  const sure = hostsSurelySlow(ways);
  const isSure = ({ from, to }: MeasuredWay) => sure.includes(from) || sure.includes(to);
  const doubtful = [...failed, ...[...slow, ...unclear, ...lossy].filter((way) => !isSure(way))];
  const pairs = doubtful.map(({ from, to }): HostPair => (from < to ? [from, to] : [to, from]));
  return [...new Map(pairs.map((pair) => [pair.join(' '), pair])).values()];
}

/** Far slower than usual with two partners or more, one after the other: that was no moment. */
function hostsSurelySlow(ways: readonly MeasuredWay[]): string[] {
  const { usualRate } = badWays(ways);
  const hosts = [...new Set(ways.flatMap(({ from, to }) => [from, to]))];
  return hosts.filter((host) => {
    const own = ways.filter(({ from, to }) => from === host || to === host);
    const rates = own.map((way) => unhinderedRate(way) ?? 0);
    return partnersOf(own, host).size > 1 && rates.every((rate) => rate < CLEARLY_SLOW * usualRate);
  });
}

export function isSameWay(one: MeasuredWay, other: MeasuredWay): boolean {
  return one.from === other.from && one.to === other.to && one.rail === other.rail;
}

/** The better rate of both times that a way was measured, and the losses of the second time, when less was going on. */
export function betterWays(ways: readonly MeasuredWay[], again: readonly MeasuredWay[]): MeasuredWay[] {
  return ways.map((way) => {
    const other = again.find((one) => isSameWay(one, way) && one.rate !== null);
    if (other === undefined) return way;
    const better = (unhinderedRate(other) ?? 0) > (unhinderedRate(way) ?? 0) ? other : way;
    return { ...better, lost: other.lost };
  });
}

export function pairFindings(ways: readonly MeasuredWay[]): Finding[] {
  const names = [...new Set(ways.flatMap(({ from, to }) => [from, to]))];
  const { usualLost, failed, slow, lossy, unclear } = badWays(ways);
  const usual = middle(ways.flatMap(({ rate }) => rate ?? []));
  const found = [
    ...blame('network.reach', failed, ways, names, 'does not reach', ({ error }) => error ?? ''),
    ...blame('network.bandwidth', slow, ways, names, 'slow with', (way) => rateText(way, usual)),
    ...blame('network.loss', lossy, ways, names, 'loses packets with', (way) => {
      return `${percent(way.lost ?? 0)} of the packets of TCP were sent again from ${way.from} to ${way.to} (median of all: ${percent(usualLost)})`;
    }),
    ...unclear.slice(0, MAX_WAYS).map((way) => unclearFinding(way, usual)),
  ];
  const bad = new Set(found.map(({ host }) => host));
  return [
    ...found,
    ...names
      .filter((host) => !bad.has(host))
      .map(
        (host) => ({ check: 'network.bandwidth', answer: 'ok', host, subject: '', message: '', remedy: null }) as const,
      ),
  ];
}

function unclearFinding(way: MeasuredWay, usual: number): Finding {
  const busy = `its hosts were too busy to tell: they had no processor for it ${percent(way.waited)} of the time`;
  return {
    check: 'network.bandwidth',
    answer: 'note',
    host: null,
    subject: `${way.from} to ${way.to}`,
    message: `${rateText(way, usual)}; ${busy}`,
    remedy: 'run doctor again when they are idle',
  };
}

function rateText({ rate, latencyUs }: MeasuredWay, usual: number): string {
  const latency = latencyUs === null ? '' : `, ${latencyUs.toFixed(1)} µs for 8 bytes`;
  return `${(rate ?? 0).toPrecision(3)} GB/s${latency} (median of all: ${usual.toPrecision(3)} GB/s)`;
}

function percent(part: number): string {
  return `${Number((part * 100).toPrecision(2))} %`;
}

/** A host that is bad on each of its rails is named once; one that is bad on some, with those. */
function blame(
  check: string,
  bad: readonly MeasuredWay[],
  all: readonly MeasuredWay[],
  hosts: readonly string[],
  verb: string,
  describe: (way: MeasuredWay) => string,
): Finding[] {
  const rails = [...new Set(all.map(({ rail }) => rail))].toSorted((one, other) => one - other);
  const on = (ways: readonly MeasuredWay[], number: number) => ways.filter(({ rail }) => rail === number);
  const found = rails.map((rail) => ({
    rail,
    findings: blameOnRail(check, on(bad, rail), on(all, rail), hosts, verb, describe),
  }));
  const everywhere = hosts.filter((name) => found.every(({ findings }) => findings.some(({ host }) => host === name)));
  return found.flatMap(({ rail, findings }, index) =>
    findings.flatMap((finding): Finding[] => {
      if (finding.host !== null && everywhere.includes(finding.host)) return index === 0 ? [finding] : [];
      const subject = [finding.subject, `rail ${rail}`].filter((part) => part !== '').join(', ');
      return [{ ...finding, subject: rails.length > 1 ? subject : finding.subject }];
    }),
  );
}

/** One finding for each host that most of its ways have in common, then one for each way that is left. */
function blameOnRail(
  check: string,
  bad: readonly MeasuredWay[],
  all: readonly MeasuredWay[],
  hosts: readonly string[],
  verb: string,
  describe: (way: MeasuredWay) => string,
): Finding[] {
  const touches = ({ from, to }: MeasuredWay, host: string): boolean => from === host || to === host;
  let left = bad;
  const blamed: string[] = [];
  const found: Finding[] = [];
  for (;;) {
    const [worst] = hosts
      .map((host) => {
        // Ways to hosts that are blamed already say nothing of this one.
        const own = all.filter((way) => touches(way, host) && !blamed.some((other) => touches(way, other)));
        const sides = [own, own.filter(({ from }) => from === host), own.filter(({ to }) => to === host)];
        const share = Math.max(...sides.map((side) => shareOf(side, left, host)));
        return { host, bad: left.filter((way) => touches(way, host)), share };
      })
      .filter(({ share }) => share >= MOST)
      .toSorted((one, other) => other.share - one.share || other.bad.length - one.bad.length);
    const [example] = worst?.bad ?? [];
    if (worst === undefined || example === undefined) break;
    const { host } = worst;
    const partners = [...partnersOf(worst.bad, host)];
    const remedy = 'see its NIC, cable and port of the switch; --exclude keeps it out of jobs until then';
    const message = `${verb} ${partners.slice(0, 4).join(', ')}: ${describe(example)}`;
    found.push({ check, answer: 'fail', host, subject: '', message, remedy });
    blamed.push(host);
    left = left.filter((way) => !touches(way, host));
  }
  return [...found, ...left.slice(0, MAX_WAYS).map((way) => wayFinding(check, way, describe(way)))];
}

/** Part of these ways that is bad; 0 with one partner alone, who may be to blame himself. */
function shareOf(ways: readonly MeasuredWay[], bad: readonly MeasuredWay[], host: string): number {
  return partnersOf(ways, host).size < 2 ? 0 : ways.filter((way) => bad.includes(way)).length / ways.length;
}

function partnersOf(ways: readonly MeasuredWay[], host: string): Set<string> {
  return new Set(ways.map(({ from, to }) => (from === host ? to : from)));
}

function wayFinding(check: string, { from, to }: MeasuredWay, message: string): Finding {
  const remedy = 'see what is between them: a cable of the switches, a route, a firewall';
  return { check, answer: 'fail', host: null, subject: `${from} to ${to}`, message, remedy };
}
