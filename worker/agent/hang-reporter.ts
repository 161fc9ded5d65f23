/**
 * Reports ranks that make no progress inside an operation, once for each operation. The launcher then asks all agents for the positions of the
 * communicator's ranks. Both are read from the telemetry pages: no program has to do anything for it.
 */
import { readFileSync } from 'node:fs';
import type { HostGpu } from '../../control/messages/gpu.ts';
import type { HostRankPositions, NicPair, RankPosition, RankPositionsQuery } from '../../control/messages/hang.ts';
import type { TelemetryPage, TelemetrySlot } from './telemetry.ts';

const LOOKS = 8; // within the time that counts as long
const MAX_INTERVAL_MS = 1000;

interface HangReporterOptions {
  /** A rank hangs after this time without progress; 0: hangs are not reported. */
  readonly hangAfterMs: number;
  readonly telemetry: () => readonly TelemetryPage[];
  readonly gpuOf: (jobRank: number) => HostGpu | null;
  readonly stalled: (where: HostRankPositions) => void;
  /** Of the connection by which a rank of this host receives from another; null inside a host. */
  readonly nicsBetween: (communicator: RankPositionsQuery, rank: number, peer: number) => NicPair | null;
}

export class HangReporter {
  readonly #options: HangReporterOptions;
  readonly #timer: NodeJS.Timeout | null;
  /** Communicator → the operation that was reported last. */
  readonly #reported = new Map<string, number>();

  constructor(options: HangReporterOptions) {
    this.#options = options;
    const { hangAfterMs } = options;
    const intervalMs = Math.min(hangAfterMs / LOOKS, MAX_INTERVAL_MS);
    this.#timer = hangAfterMs === 0 ? null : setInterval(() => this.#look(), intervalMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Where this host's ranks of the communicator are; no ranks where it has none. */
  rankPositions({ communicator, epoch }: RankPositionsQuery): HostRankPositions {
    const found = this.#options
      .telemetry()
      .flatMap((page) => page.slots.map((slot) => ({ page, slot })))
      .filter(({ slot }) => slot.communicator === communicator && slot.epoch === epoch);
    const ranks = found.map(({ page, slot }) => this.#positionOf(page, slot));
    return { communicator, epoch, size: found[0]?.slot.size ?? 0, ranks };
  }

  #positionOf({ pid, jobRank }: TelemetryPage, slot: TelemetrySlot): RankPosition {
    const { rank, operation, collective, bytes, waitingFor: peer } = slot;
    return {
      jobRank,
      pid,
      gpu: this.#options.gpuOf(jobRank),
      rank,
      operation,
      inside: isInside(slot),
      collective: collective ?? 'an operation',
      bytes,
      waitedMs: Math.round(waitedMs(slot)),
      stopped: isStopped(pid),
      waitsFor: peer === null ? null : { rank: peer, nics: this.#options.nicsBetween(slot, rank, peer) },
    };
  }

  #look(): void {
    const { hangAfterMs, telemetry, stalled } = this.#options;
    for (const { slots } of telemetry()) {
      for (const slot of slots) {
        const { communicator, epoch, operation } = slot;
        if (waitedMs(slot) < hangAfterMs || this.#reported.get(communicator) === operation) continue;
        this.#reported.set(communicator, operation);
        stalled(this.rankPositions({ communicator, epoch }));
      }
    }
  }
}

/** Of a kernel that waits it is known that it waits, not since which operation. */
function isInside({ state, operation, completed }: TelemetrySlot): boolean {
  return state !== 'failed' && (state === 'waiting' || operation > completed);
}

function waitedMs(slot: TelemetrySlot): number {
  if (!isInside(slot)) return 0;
  const now = Number(process.hrtime.bigint()); // CLOCK_MONOTONIC, as the engine's clock
  return Math.max(0, now - Math.max(slot.lastProgressNs, slot.state === 'waiting' ? 0 : slot.startedNs)) / 1e6;
}

function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^[Tt]$/.test(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
  } catch {
    return false;
  }
}
