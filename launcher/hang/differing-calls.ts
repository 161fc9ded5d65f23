/** What agents say of a communicator whose ranks' calls differ, at several moments: of each rank, the latest call counts. */
import type { CommunicatorPositions, HostRankPositions, RankPosition } from '../../control/messages/hang.ts';
import type { Reading } from './table.ts';

export class DifferingCalls {
  readonly #answers = new Map<string, HostRankPositions>();

  /** `name`: the communicator's id and epoch. */
  add(host: string, where: HostRankPositions, name: string): void {
    const now = where.communicators.find(({ communicator, epoch }) => `${communicator}:${epoch}` === name);
    if (now === undefined) return;
    const before = this.#answers.get(host);
    const processes = new Map([...(before?.processes ?? []), ...where.processes].map((one) => [one.jobRank, one]));
    const communicators = [latest(before?.communicators[0], now)];
    this.#answers.set(host, { ...where, communicators, processes: [...processes.values()] });
  }

  get reading(): Reading {
    return { answers: this.#answers, asked: [...this.#answers.keys()] };
  }
}

function latest(before: CommunicatorPositions | undefined, now: CommunicatorPositions): CommunicatorPositions {
  const ranks = new Map<number, RankPosition>();
  for (const position of [...(before?.ranks ?? []), ...now.ranks]) {
    const known = ranks.get(position.rank);
    if (known === undefined || (position.calls?.count ?? -1) >= (known.calls?.count ?? -1))
      ranks.set(position.rank, position);
  }
  return { ...now, ranks: [...ranks.values()] };
}
