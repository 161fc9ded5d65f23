/**
 * Reports ranks that make no progress inside an operation, and again when a wait has become twice as long: the launcher may have seen the ranks at a
 * moment that told it nothing. The launcher then asks all agents for the positions of all
 * their ranks, twice. The telemetry pages have the positions: no program has to do anything for it.
 */
import { monotonicMs } from '../../control/clock.ts';
import type { HostGpu } from '../../control/messages/gpu.ts';
import type {
  CommunicatorName,
  CommunicatorPositions,
  HostRankPositions,
  NicPair,
  NumberedCall,
  RankPosition,
  RankPositionsQuery,
  RankProcess,
} from '../../control/messages/hang.ts';
import type { GpuHealth } from '../../control/messages/host-health.ts';
import { rankArrivals } from './arrivals.ts';
import { rankEdges } from './edges.ts';
import { nicErrors } from './nic-errors.ts';
import { recentCalls, recentName } from './recent-calls.ts';
import type { RecentCalls } from './recent-calls.ts';
import { processFacts, sleepOf, stolenMs } from './rank-process.ts';
import type { TelemetryPage, TelemetrySlot } from './telemetry.ts';

const LOOKS = 8; // within the time that counts as long
const MAX_INTERVAL_MS = 1000;
/** Positions in one answer, which has at most a MiB. */
const MAX_POSITIONS = 1000;
/** The same where each comes with the last calls. */
const MAX_WITH_CALLS = 256;
/** Failed ranks of which the launcher learns where they were. */
const MAX_FAILED = 4;

interface HangReporterOptions {
  /** A rank hangs after this time without progress; 0: hangs are not reported. */
  readonly hangAfterMs: number;
  readonly telemetry: () => readonly TelemetryPage[];
  /** The flight recorders of the same processes. */
  readonly recorders: () => readonly Uint8Array[];
  readonly gpuOf: (jobRank: number) => HostGpu | null;
  /** Of the ranks' GPUs. */
  readonly gpuHealth: () => readonly GpuHealth[];
  readonly stalled: () => void;
  /** Of the connection by which a rank of this host receives from another; null inside a host. */
  readonly nicsBetween: (communicator: CommunicatorName, rank: number, peer: number) => NicPair | null;
}

interface ReportedWait {
  readonly operation: number;
  /** When it was reported. Waits that began later are others, of the same operation where a graph repeats it. */
  readonly atMs: number;
  /** It is reported again when it has lasted for so long. */
  readonly againMs: number;
}

export class HangReporter {
  readonly #options: HangReporterOptions;
  readonly #timer: NodeJS.Timeout | null;
  /** By rank of the job and communicator: the wait that was reported last. */
  readonly #reported = new Map<string, ReportedWait>();
  #failed = 0;
  /** Waits count from here on. */
  #sinceNs = 0;

  constructor(options: HangReporterOptions) {
    this.#options = options;
    const { hangAfterMs } = options;
    const intervalMs = Math.min(hangAfterMs / LOOKS, MAX_INTERVAL_MS);
    this.#timer = hangAfterMs === 0 ? null : setInterval(() => this.#look(), intervalMs).unref();
  }

  /** The job was suspended until now: no rank could make progress. */
  resumed(): void {
    this.#sinceNs = nowNs();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Where this host's ranks are in all their communicators. Positions inside operations come first where there is no room for all. */
  rankPositions({ reading, inspect, arrivals, edges }: RankPositionsQuery): HostRankPositions {
    const recorders = this.#options.recorders();
    return {
      ...this.#read(reading, inspect, new Map(), () => true),
      ...(arrivals && {
        arrivals: rankArrivals(recorders),
        health: { nics: nicErrors(), gpus: this.#options.gpuHealth() },
      }),
      ...(edges && { edges: rankEdges(recorders) }),
    };
  }

  /** Where this host's ranks are in one communicator. */
  positionsIn({ communicator, epoch }: CommunicatorName): HostRankPositions {
    const calls = recentCalls(this.#options.recorders());
    return this.#read(0, [], calls, (_, slot) => slot.communicator === communicator && slot.epoch === epoch);
  }

  /** Where this host's ranks are in all communicators of one that failed. Null: it was in none, or others failed before, and it had to. */
  positionsOfFailed(jobRank: number): HostRankPositions | null {
    if (this.#failed >= MAX_FAILED) return null;
    const own = this.#options.telemetry().filter((page) => page.jobRank === jobRank);
    const names = new Set(own.flatMap(({ slots }) => slots.map(nameOf)));
    const calls = recentCalls(this.#options.recorders());
    const positions = this.#read(0, [], calls, (_, slot) => names.has(nameOf(slot)));
    if (positions.communicators.length === 0) return null;
    this.#failed += 1;
    return positions;
  }

  #read(
    reading: number,
    inspect: readonly number[],
    calls: RecentCalls,
    isWanted: (page: TelemetryPage, slot: TelemetrySlot) => boolean,
  ): HostRankPositions {
    // Before the pages are read: what they say has moved later is later.
    const monotonicUs = Number(process.hrtime.bigint() / 1000n);
    const pages = this.#options.telemetry();
    const found = pages
      .flatMap((page) => page.slots.map((slot) => ({ page, slot })))
      .filter(({ page, slot }) => isWanted(page, slot));
    const kept =
      found.length <= MAX_POSITIONS
        ? found
        : found
            .toSorted((one, other) => Number(isInside(other.slot)) - Number(isInside(one.slot)))
            .slice(0, MAX_POSITIONS);
    const communicators = new Map<string, CommunicatorPositions & { readonly ranks: RankPosition[] }>();
    for (const { page, slot } of kept) {
      const { communicator, epoch, size } = slot;
      const name = nameOf(slot);
      const known = communicators.get(name) ?? { communicator, epoch, size, ranks: [] };
      communicators.set(name, known);
      const recent = kept.length > MAX_WITH_CALLS ? [] : (calls.get(recentName(communicator, epoch, slot.rank)) ?? []);
      known.ranks.push(this.#positionOf(page, slot, recent));
    }
    return {
      reading,
      atMs: Math.round(performance.now()),
      monotonicUs,
      communicators: [...communicators.values()],
      processes: this.#processes([...new Set(kept.map(({ page }) => page))], new Set(inspect)),
      stolenMs: stolenMs(),
      health: null,
      arrivals: [],
      edges: [],
      omitted: found.length - kept.length,
    };
  }

  #processes(pages: readonly TelemetryPage[], inspect: ReadonlySet<number>): RankProcess[] {
    const seen = new Map<number, RankProcess>();
    for (const { pid, jobRank, slots } of pages) {
      if (seen.has(jobRank) || slots.length === 0) continue;
      const sleep = inspect.has(jobRank) ? sleepOf(pid) : null;
      seen.set(jobRank, { jobRank, pid, gpu: this.#options.gpuOf(jobRank), ...processFacts(pid), sleep });
    }
    return [...seen.values()];
  }

  #positionOf({ jobRank }: TelemetryPage, slot: TelemetrySlot, recent: readonly NumberedCall[]): RankPosition {
    const { rank, operation, collective, bytes, waitingFor: peer } = slot;
    const waited = waitedMs(slot, this.#sinceNs);
    return {
      jobRank,
      rank,
      operation,
      inside: isInside(slot),
      byKernel: slot.state === 'waiting' && operation <= slot.completed,
      collective: collective ?? 'an operation',
      bytes,
      waitedMs: Math.round(waited),
      hangs: isInside(slot) && waited >= this.#options.hangAfterMs,
      progressUs: Math.round(slot.lastProgressNs / 1000),
      waitsFor: peer === null ? null : { rank: peer, nics: this.#options.nicsBetween(slot, rank, peer) },
      calls: slot.calls === null ? null : { ...slot.calls, recent },
    };
  }

  #look(): void {
    const { hangAfterMs, telemetry, stalled } = this.#options;
    let isNew = false;
    for (const { jobRank, slots } of telemetry()) {
      for (const slot of slots) {
        const { communicator, epoch, operation, rank } = slot;
        const name = `${jobRank}:${rank}:${communicator}:${epoch}`;
        const atMs = monotonicMs();
        const waited = waitedMs(slot, this.#sinceNs);
        const known = this.#reported.get(name);
        const isSame = known?.operation === operation && atMs - waited <= known.atMs;
        if (waited < hangAfterMs || (isSame && waited < known.againMs)) continue;
        this.#reported.set(name, { operation, atMs, againMs: 2 * waited });
        isNew = true;
      }
    }
    if (isNew) stalled();
  }
}

function nameOf({ communicator, epoch }: CommunicatorName): string {
  return `${communicator}:${epoch}`;
}

/** Of a kernel that waits it is known that it waits, not since which operation. */
function isInside({ state, operation, completed }: TelemetrySlot): boolean {
  return state !== 'failed' && (state === 'waiting' || operation > completed);
}

function waitedMs(slot: TelemetrySlot, sinceNs: number): number {
  if (!isInside(slot)) return 0;
  const begun = Math.max(slot.lastProgressNs, slot.state === 'waiting' ? 0 : slot.startedNs, sinceNs);
  return Math.max(0, nowNs() - begun) / 1e6;
}

/** CLOCK_MONOTONIC, as the engine's clock. */
function nowNs(): number {
  return Number(process.hrtime.bigint());
}
