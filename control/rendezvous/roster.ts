/** The ranks of the job as the rendezvous sees them: who is left to join what. */
import { describeKey } from '../messages/key.ts';
import type { Gathering } from './collector.ts';
import { listRanks } from './failure.ts';
import type { LateReport } from './late.ts';

export class Roster {
  readonly #rankHosts: readonly number[];
  readonly #hostName: (host: number) => string;
  /** Rank → how it ended, in the order of ending. */
  readonly #ended = new Map<number, string>();

  constructor(rankHosts: readonly number[], hostName: (host: number) => string) {
    this.#rankHosts = rankHosts;
    this.#hostName = hostName;
  }

  end(rank: number, sentence: string): void {
    this.#ended.set(rank, sentence);
  }

  /** `phrase` follows the name of each of its ranks. */
  endHost(host: number, phrase: string): void {
    this.#rankHosts.forEach((of, rank) => {
      if (of === host && !this.#ended.has(rank)) this.#ended.set(rank, `rank ${rank} ${phrase}`);
    });
  }

  /** Some have ended, or were lost with their hosts. */
  get anyOver(): boolean {
    return this.#ended.size > 0;
  }

  /** It has ended, or was lost with its host. */
  isOver(rank: number): boolean {
    return this.#ended.has(rank);
  }

  /**
   * Too few ranks are left that could still join, or one of `needed`, those of the job that must, as far as they are known, has ended. A rank that has contributed is not expected to contribute again, though one process may
   * hold several ranks: hence the hub's grace.
   */
  isDoomed(gathering: Gathering, needed: readonly number[]): boolean {
    if (this.#ended.size === 0) return false;
    if (needed.some((rank) => this.#ended.has(rank))) return true;
    const there = new Set<number>();
    for (const { jobRank } of gathering.entries.values()) {
      if (jobRank >= 0 && !this.#ended.has(jobRank)) there.add(jobRank);
    }
    const able = this.#rankHosts.length - this.#ended.size - there.size;
    return able < gathering.size - gathering.leftOut.length - gathering.entries.size;
  }

  /** Whom to blame and what to say; of several, the missing rank that ended first. */
  describeDoom(gathering: Gathering, needed: readonly number[]): { readonly rank: number; readonly sentence: string } {
    const ended = [...this.#ended.keys()];
    const ranks = needed.length === 0 ? ended : ended.filter((rank) => needed.includes(rank));
    const numbered = this.#isNumberedAsJob(gathering);
    const rank = ranks.find((one) => !numbered || !gathering.entries.has(one)) ?? 0;
    const joined = listRanks([...gathering.entries.keys()].sort((a, b) => a - b));
    const verb = gathering.entries.size === 1 ? 'has' : 'have';
    return {
      rank,
      sentence:
        `${this.#ended.get(rank) ?? `rank ${rank} ended`} without joining ${describeKey(gathering.key)}: ` +
        `of its ${gathering.size} ranks ${joined} ${verb} come`,
    };
  }

  /** Names of the ranks that have not contributed, and their numbers in the job where they are known. */
  missingFrom(gathering: Gathering): Pick<LateReport, 'missing' | 'ranks'> {
    const numbered = this.#isNumberedAsJob(gathering);
    const ranks: number[] = [];
    const leftOut = new Set(gathering.leftOut);
    for (let rank = 0; rank < gathering.size; rank++)
      if (!gathering.entries.has(rank) && !leftOut.has(rank)) ranks.push(rank);
    const missing = ranks.map((rank) =>
      numbered ? `rank ${rank} (${this.#hostName(this.#rankHosts[rank] ?? -1)})` : `rank ${rank}`,
    );
    return { missing, ranks: numbered ? ranks : [] };
  }

  /** A communicator of all ranks of the job, numbered like the job as far as one sees. */
  #isNumberedAsJob(gathering: Gathering): boolean {
    if (gathering.size !== this.#rankHosts.length) return false;
    for (const { rank, jobRank } of gathering.entries.values()) if (jobRank !== -1 && jobRank !== rank) return false;
    return true;
  }
}
