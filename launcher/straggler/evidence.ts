/** What may slow a rank or a link down, as the kernel and the driver of its host have counted it between two answers. */
import type { GpuHealth, HostHealth } from '../../control/messages/host-health.ts';
import type { HostRankPositions, RankProcess } from '../../control/messages/hang.ts';
import type { Evidence } from '../model/hang.ts';
import { median } from './lateness.ts';
import type { LinkEnd } from './links.ts';

type Answers = ReadonlyMap<string, { readonly where: HostRankPositions }>;

/** Of one CPU: less of it that a hypervisor gives to others slows nobody down. */
const MIN_STOLEN = 0.05;
/** Every network drops some packets that nobody has asked for. */
const MIN_DROPS = 10;
/** Of the median of equal GPUs: a lower clock is worth a word. */
const MIN_CLOCK = 0.9;
const IDLE = 0x1;
/** Why NVML says that clocks are low: those reasons that slow a busy GPU down. */
const THROTTLE_REASONS: readonly (readonly [bit: number, name: string])[] = [
  [0x4, 'power cap'],
  [0x8, 'hardware slowdown'],
  [0x20, 'thermal slowdown by software'],
  [0x40, 'thermal slowdown by hardware'],
  [0x80, 'power brake'],
];

export function rankEvidence(rank: number, before: Answers, now: Answers): Evidence[] {
  for (const [host, { where }] of now) {
    const process = where.processes.find(({ jobRank }) => jobRank === rank);
    if (process === undefined) continue;
    const earlier = before.get(host)?.where;
    const known = earlier?.processes.find(({ jobRank }) => jobRank === rank);
    return [
      ...processEvidence(host, process, known),
      ...hostEvidence(host, where, earlier),
      ...gpuEvidence(host, process, now, earlier?.health ?? null),
      ...nicEvidence(host, () => true, where.health, earlier?.health ?? null),
    ];
  }
  return [];
}

/** Errors that the NIC at one end of a link has counted. */
export function linkEvidence({ host, nic }: LinkEnd, before: Answers, now: Answers): Evidence[] {
  const isOwn = (name: string): boolean => name === nic || name.startsWith(`${nic}:`);
  return nicEvidence(host, isOwn, now.get(host)?.where.health ?? null, before.get(host)?.where.health ?? null);
}

function processEvidence(host: string, now: RankProcess, before: RankProcess | undefined): Evidence[] {
  const about = { host, subject: `rank ${now.jobRank}` };
  const held = (now.throttled ?? 0) - (before?.throttled ?? now.throttled ?? 0);
  const evidence: Evidence[] = held > 0 ? [{ kind: 'throttled', ...about, value: held, unit: 'periods' }] : [];
  if (now.state === 'uninterruptible') evidence.push({ kind: 'process-state', ...about, value: now.state, unit: null });
  return evidence;
}

/** How much of one CPU others have taken. */
function hostEvidence(host: string, now: HostRankPositions, before: HostRankPositions | undefined): Evidence[] {
  if (before === undefined || before.stolenMs === null || now.stolenMs === null) return [];
  const passedMs = (now.monotonicUs - before.monotonicUs) / 1000;
  const stolen = passedMs <= 0 ? 0 : (now.stolenMs - before.stolenMs) / passedMs;
  if (stolen < MIN_STOLEN) return [];
  return [{ kind: 'stolen', host, subject: host, value: Math.round(stolen * 100), unit: '% of a CPU' }];
}

function gpuEvidence(host: string, { gpu }: RankProcess, now: Answers, before: HostHealth | null): Evidence[] {
  const isOwn = ({ address }: GpuHealth): boolean => address === gpu?.address;
  const own = now.get(host)?.where.health?.gpus.find(isOwn);
  if (gpu === null || own === undefined) return [];
  const evidence: Evidence[] = [];
  const add = (kind: string, value: string | number, unit: string | null): void =>
    void evidence.push({ kind, host, subject: `GPU ${gpu.index}`, value, unit });
  const reasons = THROTTLE_REASONS.filter(([bit]) => ((own.throttleReasons ?? 0) & bit) !== 0);
  if (reasons.length > 0) add('throttle-reason', reasons.map(([, name]) => name).join(', '), null);
  const usual = usualClock(own, now);
  if (own.clock !== null && usual !== null && !isIdle(own) && own.clock < MIN_CLOCK * usual) {
    add('gpu-clock', own.clock, 'MHz');
    add('usual-gpu-clock', usual, 'MHz');
  }
  const known = before?.gpus.find(isOwn);
  for (const kind of ['uncorrected', 'corrected'] as const) {
    const grown = (own[kind] ?? 0) - (known?.[kind] ?? own[kind] ?? 0);
    if (grown > 0) add('ecc-errors', grown, kind);
  }
  if (own.pcieWidth !== null && own.maxPcieWidth !== null && own.pcieWidth < own.maxPcieWidth)
    add('pcie-width', own.pcieWidth, `of ${own.maxPcieWidth} lanes`);
  return evidence;
}

/** Its clock is low because it has nothing to do. */
function isIdle({ throttleReasons }: GpuHealth): boolean {
  return ((throttleReasons ?? 0) & IDLE) !== 0;
}

/** Median of the job's other busy GPUs of the kind; null: there is none. */
function usualClock({ address, maxClock }: GpuHealth, now: Answers): number | null {
  const clocks = Array.from(now.values()).flatMap(({ where }) =>
    (where.health?.gpus ?? []).flatMap((one) =>
      one.address === address || one.maxClock !== maxClock || one.clock === null || isIdle(one) ? [] : [one.clock],
    ),
  );
  return clocks.length === 0 ? null : median(clocks);
}

function nicEvidence(
  host: string,
  isWanted: (nic: string) => boolean,
  now: HostHealth | null,
  before: HostHealth | null,
): Evidence[] {
  if (now === null || before === null) return [];
  return now.nics
    .filter(({ nic }) => isWanted(nic))
    .flatMap(({ nic, counters }) => {
      const known = before.nics.find((one) => one.nic === nic)?.counters ?? {};
      return Object.entries(counters).flatMap(([unit, count]): Evidence[] => {
        const value = count - (known[unit] ?? 0);
        const least = unit.endsWith('_dropped') ? MIN_DROPS : 1;
        return value >= least ? [{ kind: 'nic-errors', host, subject: nic, value, unit }] : [];
      });
    });
}
