/** Planted positions of ranks, as agents answer the launcher: a job of which a test knows whose fault its hang is. */
import type { CallHistory, HostRankPositions, RankPosition, RankProcess } from '../../control/messages/hang.ts';
import type { Reading } from '../../launcher/hang/table.ts';

/** Changes of one rank in one communicator. */
export type Change = Partial<Omit<RankPosition, 'waitsFor'>> & {
  /** Rank of the communicator. */
  readonly waitsFor?: number | null;
  /** Names of both NICs, where it waits for another host. */
  readonly nics?: readonly [own: string, peer: string];
};

export interface PlantedComm {
  readonly id: string;
  /** Ranks of the job, in the order of the communicator. */
  readonly ranks: readonly number[];
  /** By rank of the job; those without one wait in operation 17. */
  readonly changes?: Readonly<Record<number, Change>>;
  /** Of all. */
  readonly all?: Change;
  readonly size?: number;
}

export interface PlantedJob {
  readonly comms: readonly PlantedComm[];
  readonly processes?: Readonly<Record<number, Partial<RankProcess>>>;
  /** CPU time of each process between the readings. */
  readonly cpuMs?: Readonly<Record<number, number>>;
  readonly ranksPerHost?: number;
  readonly silent?: readonly string[];
  readonly omitted?: number;
}

/** CLOCK_MONOTONIC of all hosts at the first reading. */
export const FIRST_US = 100_000_000;

/** Outside of all operations, having ended this one. */
export const ended = (operation: number): Change => ({ operation, inside: false, waitedMs: 0, hangs: false });

export function history(count: number, hashes: readonly number[], call: CallHistory['call'] = null): CallHistory {
  const last = call === null ? 'a barrier' : `${call.collective} of ${call.count} ${call.type}`;
  return { count, hashes, last, call, recent: [] };
}

/** The two readings, 250 ms apart; `moved`: ranks of the job that made progress in between. */
export function readings(job: PlantedJob, moved: readonly number[] = []): readonly [first: Reading, second: Reading] {
  return [reading(job, 0, []), reading(job, 250, moved)];
}

function reading(job: PlantedJob, atMs: number, moved: readonly number[]): Reading {
  const { comms, processes = {}, cpuMs = {}, ranksPerHost = 2, silent = [], omitted = 0 } = job;
  const hostOf = (rank: number): string => `h${Math.floor(rank / ranksPerHost)}`;
  const ranks = [...new Set(comms.flatMap((comm) => comm.ranks))];
  const hosts = [...new Set(ranks.map(hostOf))];
  const answers = new Map<string, HostRankPositions>();
  for (const host of hosts.filter((one) => !silent.includes(one))) {
    const own = ranks.filter((rank) => hostOf(rank) === host);
    answers.set(host, {
      reading: 1,
      atMs,
      monotonicUs: FIRST_US + atMs * 1000,
      stolenMs: null,
      health: null,
      arrivals: [],
      edges: [],
      omitted,
      communicators: comms.map((comm) => ({
        communicator: comm.id,
        epoch: 0,
        size: comm.size ?? comm.ranks.length,
        ranks: comm.ranks.flatMap((jobRank, rank) =>
          own.includes(jobRank) ? [position(comm, jobRank, rank, moved.includes(jobRank))] : [],
        ),
      })),
      processes: own.map((jobRank) => ({
        jobRank,
        pid: 70 + jobRank,
        gpu: null,
        state: 'sleeping',
        cpuMs: atMs === 0 ? 0 : (cpuMs[jobRank] ?? 0),
        throttled: null,
        sleep: null,
        ...processes[jobRank],
      })),
    });
  }
  return { answers, asked: hosts };
}

function position(comm: PlantedComm, jobRank: number, rank: number, isMoved: boolean): RankPosition {
  const { waitsFor = null, nics, ...rest } = { ...comm.all, ...comm.changes?.[jobRank] };
  return {
    jobRank,
    rank,
    operation: 17,
    inside: true,
    byKernel: false,
    collective: 'allReduce',
    bytes: 4096,
    waitedMs: 31_260,
    hangs: true,
    progressUs: isMoved ? FIRST_US + 100_000 : FIRST_US - 31_260_000,
    calls: null,
    ...rest,
    waitsFor:
      waitsFor === null ? null : { rank: waitsFor, nics: nics === undefined ? null : { own: nics[0], peer: nics[1] } },
  };
}
