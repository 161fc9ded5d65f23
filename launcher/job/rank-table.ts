/** The ranks of a started job: on which host each one is, how it fares, and how many are still to start and to end. */
import type { Frame } from '../../control/messages/frame.ts';
import { decodeExited, decodeSpawned } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { Host } from './host.ts';
import { exitedRank, isOver, lose, waiting } from './rank.ts';
import type { ExitedRank, RankState } from './rank.ts';
import type { RankMap } from '../model/types.ts';

export class RankTable {
  readonly #map: RankMap;
  /** In the map's order. */
  readonly #hosts: readonly Host[];
  readonly #indexes: ReadonlyMap<Host, number>;
  readonly #ranksOn: readonly (readonly number[])[];
  readonly #states: RankState[];
  #toStart: number;
  #left: number;

  /** `hosts` are the map's, in its order. */
  constructor(map: RankMap, hosts: readonly Host[]) {
    this.#map = map;
    this.#hosts = hosts;
    this.#indexes = new Map(hosts.map((host, index) => [host, index]));
    const ranksOn: number[][] = hosts.map(() => []);
    for (const { rank, host } of map.ranks) ranksOn[host]?.push(rank);
    this.#ranksOn = ranksOn;
    this.#states = map.ranks.map(() => waiting);
    this.#toStart = this.#left = map.ranks.length;
  }

  /** Of a job that has started none. */
  static none(): RankTable {
    return new RankTable({ hosts: [], ranks: [] }, []);
  }

  get states(): readonly RankState[] {
    return this.#states;
  }

  /** Neither ended nor lost. */
  get left(): number {
    return this.#left;
  }

  get allStarted(): boolean {
    return this.#toStart === 0;
  }

  isRankOver(rank: number): boolean {
    const state = this.#states[rank];
    return state === undefined || isOver(state);
  }

  hostOf(rank: number): Host | null {
    return this.#hosts[this.#map.ranks[rank]?.host ?? -1] ?? null;
  }

  hostNameOf(rank: number): string {
    return this.hostOf(rank)?.name ?? 'unknown host';
  }

  /** Ranks of a host, ascending. */
  of(host: Host): readonly number[] {
    return this.#ranksOn[this.indexOf(host)] ?? [];
  }

  /** As the map counts them; -1: it has no ranks. */
  indexOf(host: Host): number {
    return this.#indexes.get(host) ?? -1;
  }

  /** Which of the job's programs the rank runs. */
  programOf(rank: number): number {
    return this.#map.ranks[rank]?.program ?? 0;
  }

  /** @throws ProtocolError like all that follow, if the host speaks of a rank that it does not have, or that is not in that state */
  spawned(host: Host, frame: Frame): { readonly rank: number; readonly pid: number } {
    const { rank } = this.#rankOn(host, frame, 'waiting');
    const { pid, time } = decodeSpawned(frame.payload);
    this.#states[rank] = { name: 'running', pid, startedAt: time };
    this.#toStart -= 1;
    return { rank, pid };
  }

  /** `byUs`: whether who ended at that time had been asked to. */
  exited(host: Host, frame: Frame, byUs: (time: number) => boolean): { rank: number; exited: ExitedRank } {
    const { rank, state } = this.#rankOn(host, frame, 'running');
    if (state.name !== 'running') throw new ProtocolError(`the end of rank ${rank}, which is ${state.name}`);
    const exited = exitedRank(state, decodeExited(frame.payload), byUs);
    this.#states[rank] = exited;
    this.#left -= 1;
    return { rank, exited };
  }

  spawnFailed(host: Host, frame: Frame): number {
    const { rank } = this.#rankOn(host, frame, 'waiting');
    this.#states[rank] = { name: 'unstarted' };
    this.#toStart -= 1;
    this.#left -= 1;
    return rank;
  }

  /** Nothing can be learnt of ranks of a host that is over. Returns those that were left. */
  lose(host: Host): readonly number[] {
    const lost = (this.#ranksOn[this.indexOf(host)] ?? []).filter((rank) => {
      const state = this.#states[rank];
      return state !== undefined && !isOver(state);
    });
    for (const rank of lost) {
      const state = this.#states[rank] ?? waiting;
      if (state.name === 'waiting') this.#toStart -= 1;
      this.#states[rank] = lose(state);
      this.#left -= 1;
    }
    return lost;
  }

  /** A rank that has ended may be spoken of: what it has started may live and write. */
  expectStarted(host: Host, frame: Frame): void {
    const state = this.#stateOn(host, frame);
    if (state.name === 'waiting')
      throw new ProtocolError(`a frame of kind ${frame.kind} for rank ${frame.subject}, which is waiting`);
  }

  /** The host has ranks: those of others have no business in the rendezvous. */
  indexWithRanks(host: Host): number {
    const index = this.indexOf(host);
    if (index === -1) throw new ProtocolError('a message of a rank, of which it has none');
    return index;
  }

  /** The report, which must be of a rank that is, or was, on this host. */
  ofItsOwn<Report extends { readonly rank: number }>(host: Host, report: Report): Report {
    if (this.hostOf(report.rank) === host) return report;
    throw new ProtocolError(`a report of rank ${report.rank}, which does not run there`);
  }

  #stateOn(host: Host, { subject: rank, kind }: Frame): RankState {
    const state = this.#states[rank];
    if (state === undefined || this.hostOf(rank) !== host)
      throw new ProtocolError(`a frame of kind ${kind} for rank ${rank}, which does not run there`);
    return state;
  }

  #rankOn(host: Host, frame: Frame, expected: RankState['name']): { rank: number; state: RankState } {
    const { subject: rank, kind } = frame;
    const state = this.#stateOn(host, frame);
    if (state.name !== expected)
      throw new ProtocolError(`a frame of kind ${kind} for rank ${rank}, which is ${state.name}`);
    return { rank, state };
  }
}
