/** Finds the ranks that others wait for, when ranks hang in an operation: the agents report each rank's position. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostRankPositions, RankPosition } from '../../control/messages/hang.ts';
import { RecentMap } from '../../control/rendezvous/memory.ts';
import type { Hang } from '../model/hang.ts';
import { rankName } from '../text/rank-name.ts';
import { ranges } from '../text/ranges.ts';

/** An agent that has not answered by then is not waited for. */
const ANSWER_MS = 1000;
/** At a time. */
const MAX_INQUIRIES = 64;
/** Communicators of which a hang was reported. */
const REMEMBERED = 1024;

interface HangJudgeOptions {
  /** Hosts that have ranks and may answer. */
  hosts(): readonly string[];
  send(host: string, frame: Frame): void;
  hostOf(rank: number): string;
  found(hang: Hang): void;
}

interface Inquiry {
  readonly answers: Map<string, HostRankPositions>;
  readonly asked: readonly string[];
  readonly timeout: NodeJS.Timeout;
}

export class HangJudge {
  readonly #options: HangJudgeOptions;
  /** By communicator. */
  readonly #inquiries = new Map<string, Inquiry>();
  readonly #reported = new RecentMap<number>(REMEMBERED);

  constructor(options: HangJudgeOptions) {
    this.#options = options;
  }

  /** A host's ranks hang in an operation of that communicator. */
  stalled(host: string, where: HostRankPositions): void {
    const name = nameOf(where);
    const known = this.#inquiries.get(name);
    if (known !== undefined) return this.answered(host, where);
    if (this.#inquiries.size >= MAX_INQUIRIES) return undefined; // a job that hangs in so many is reported often enough
    const asked = this.#options.hosts();
    const timeout = setTimeout(() => this.#judge(name), ANSWER_MS);
    this.#inquiries.set(name, { answers: new Map([[host, where]]), asked, timeout: timeout });
    const payload = encodeJson({ communicator: where.communicator, epoch: where.epoch });
    for (const other of asked) {
      if (other !== host) this.#options.send(other, makeFrame(FrameKind.rankPositions, { payload }));
    }
    return this.#judgeIfAll(name);
  }

  answered(host: string, where: HostRankPositions): void {
    this.#inquiries.get(nameOf(where))?.answers.set(host, where);
    this.#judgeIfAll(nameOf(where));
  }

  close(): void {
    for (const { timeout } of this.#inquiries.values()) clearTimeout(timeout);
    this.#inquiries.clear();
  }

  #judgeIfAll(name: string): void {
    const inquiry = this.#inquiries.get(name);
    if (inquiry?.asked.every((host) => inquiry.answers.has(host)) === true) this.#judge(name);
  }

  #judge(name: string): void {
    const inquiry = this.#inquiries.get(name);
    if (inquiry === undefined) return;
    clearTimeout(inquiry.timeout);
    this.#inquiries.delete(name);
    const hang = describeHang(inquiry.answers, inquiry.asked, (rank) => this.#options.hostOf(rank));
    if (hang === null || (this.#reported.get(name) ?? 0) >= hang.operation) return;
    this.#reported.set(name, hang.operation);
    this.#options.found(hang);
  }
}

/** Null where nobody is inside an operation any more. */
function describeHang(
  answers: ReadonlyMap<string, HostRankPositions>,
  asked: readonly string[],
  hostOf: (rank: number) => string,
): Hang | null {
  const all = [...answers.values()];
  const ranks = all.flatMap((answer) => answer.ranks).toSorted((one, other) => one.jobRank - other.jobRank);
  const inside = ranks.filter((rank) => rank.inside);
  const [first] = inside.toSorted((one, other) => other.operation - one.operation || other.waitedMs - one.waitedMs);
  const [communicator] = all;
  if (first === undefined || communicator === undefined) return null;
  const { operation, collective, bytes } = first;
  const late = ranks.flatMap((rank) => lateness(rank, operation, hostOf(rank.jobRank)));
  const silent = asked.filter((host) => !answers.has(host)).map((host) => `${host} does not say where its ranks are`);
  const missing = Math.max(0, Math.max(...all.map(({ size }) => size)) - ranks.length);
  const left = missing > 0 && silent.length === 0 ? [`${missing} of its ranks have left it`] : [];
  return {
    communicator: communicator.communicator,
    operation,
    call: collective === 'barrier' ? 'a barrier' : `${collective} of ${bytes} bytes`,
    late: [...late, ...silent, ...left],
    waits: inside.flatMap((rank) => waitOf(rank, ranks, hostOf)),
    waiting: ranges(inside.filter((rank) => rank.operation === operation).map(({ jobRank }) => jobRank)),
    seconds: Math.round(Math.max(...inside.map(({ waitedMs }) => waitedMs)) / 100) / 10,
  };
}

function waitOf(
  { jobRank, waitsFor }: RankPosition,
  all: readonly RankPosition[],
  hostOf: (rank: number) => string,
): string[] {
  const peer = all.find(({ rank }) => rank === waitsFor?.rank);
  if (waitsFor === null || peer === undefined) return [];
  const nics = waitsFor.nics === null ? '' : ` (${waitsFor.nics.own} to ${waitsFor.nics.peer})`;
  return [`rank ${jobRank} on ${hostOf(jobRank)} waits for rank ${peer.jobRank} on ${hostOf(peer.jobRank)}${nics}`];
}

/** Stopped, or at an earlier operation: nothing where the rank is where the others are. */
function lateness(rank: RankPosition, operation: number, host: string): string[] {
  const name = rankName({ rank: rank.jobRank, host, pid: rank.pid, gpu: rank.gpu });
  if (rank.stopped) return [`${name} is stopped (SIGSTOP, or a debugger)`];
  if (rank.operation >= operation) return [];
  if (rank.inside) return [`${name} is still in operation ${rank.operation} (${rank.collective})`];
  if (rank.operation === 0) return [`${name} has begun no operation`];
  return [`${name} has begun none since operation ${rank.operation} (${rank.collective}), which it has ended`];
}

function nameOf({ communicator, epoch }: HostRankPositions): string {
  return `${communicator}:${epoch}`;
}
