/** The rendezvous' list of the job's ranks: which of them can still join a communicator. */
import { describeKey } from '../messages/key.ts';
import type { PendingGather } from './collector.ts';
import { listRanks } from './failure.ts';
import type { LateReport } from './late.ts';

export class Roster {
  readonly #rankHosts: readonly number[];
  readonly #hostName: (host: number) => string;
  /** Description of each exit by rank, in the order of the exits. */
  readonly #ended = new Map<number, string>();

  constructor(rankHosts: readonly number[], hostName: (host: number) => string) {
    this.#rankHosts = rankHosts;
    this.#hostName = hostName;
  }

  end(rank: number, sentence: string): void {
    this.#ended.set(rank, sentence);
  }

  /** Records the loss of a host; `phrase` follows the name of each of its ranks. */
  endHost(host: number, phrase: string): void {
    this.#rankHosts.forEach((of, rank) => {
      if (of === host && !this.#ended.has(rank)) this.#ended.set(rank, `rank ${rank} ${phrase}`);
    });
  }

  /** True if a rank has exited or was lost with its host. */
  get anyOver(): boolean {
    return this.#ended.size > 0;
  }

  /** True if the rank has exited or was lost with its host. */
  isOver(rank: number): boolean {
    return this.#ended.has(rank);
  }

  /**
   * True if too few remaining ranks could still join, or if one of `needed` (the known ranks that must) has exited. It expects no second
   * contribution of a rank, although one process may hold several ranks of a communicator: hence the hub's grace time.
   */
  isDoomed(gather: PendingGather, needed: readonly number[]): boolean {
    if (this.#ended.size === 0) return false;
    if (needed.some((rank) => this.#ended.has(rank))) return true;
    const there = new Set<number>();
    for (const { jobRank } of gather.entries.values()) {
      if (jobRank >= 0 && !this.#ended.has(jobRank)) there.add(jobRank);
    }
    const able = this.#rankHosts.length - this.#ended.size - there.size;
    return able < gather.size - gather.leftOut.length - gather.entries.size;
  }

  /** Rank to blame and its sentence; of several missing ranks the one that exited first. */
  describeDoom(gather: PendingGather, needed: readonly number[]): { readonly rank: number; readonly sentence: string } {
    const ended = [...this.#ended.keys()];
    const ranks = needed.length === 0 ? ended : ended.filter((rank) => needed.includes(rank));
    const numbered = this.#isNumberedAsJob(gather);
    const rank = ranks.find((one) => !numbered || !gather.entries.has(one)) ?? 0;
    const joined = listRanks([...gather.entries.keys()].sort((a, b) => a - b));
    const verb = gather.entries.size === 1 ? 'has' : 'have';
    return {
      rank,
      sentence:
        `${this.#ended.get(rank) ?? `rank ${rank} ended`} without joining ${describeKey(gather.key)}: ` +
        `of its ${gather.size} ranks ${joined} ${verb} come`,
    };
  }

  /** Names of the ranks that have not contributed, and their ranks in the job where known. */
  missingFrom(gather: PendingGather): Pick<LateReport, 'missing' | 'ranks'> {
    const numbered = this.#isNumberedAsJob(gather);
    const ranks: number[] = [];
    const leftOut = new Set(gather.leftOut);
    for (let rank = 0; rank < gather.size; rank++)
      if (!gather.entries.has(rank) && !leftOut.has(rank)) ranks.push(rank);
    const missing = ranks.map((rank) =>
      numbered ? `rank ${rank} (${this.#hostName(this.#rankHosts[rank] ?? -1)})` : `rank ${rank}`,
    );
    return { missing, ranks: numbered ? ranks : [] };
  }

  /** True if the communicator has all ranks of the job and, as far as known, the same numbering. */
  #isNumberedAsJob(gather: PendingGather): boolean {
    if (gather.size !== this.#rankHosts.length) return false;
    for (const { rank, jobRank } of gather.entries.values()) if (jobRank !== -1 && jobRank !== rank) return false;
    return true;
  }
}
