/** Asks all agents twice for the positions of their ranks when ranks hang in an operation, and reports whose fault it is. */
import { monotonicMs } from '../../control/clock.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { MAX_INSPECTED } from '../../control/messages/hang.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import { RecentMap } from '../../control/rendezvous/memory.ts';
import { blamedRanks, judgeHangs } from '../hang/judge.ts';
import type { Reading } from '../hang/table.ts';
import type { Hang } from '../model/hang.ts';

/** An agent that has not answered by then is not waited for. */
const ANSWER_MS = 1000;
/** Between the two readings: a rank that moves meanwhile waits for nobody. */
const BETWEEN_MS = 250;
/** Communicators of which a hang was reported. */
const REMEMBERED = 1024;

interface HangJudgeOptions {
  /** Hosts that have ranks and may answer. */
  hosts(): readonly string[];
  send(host: string, frame: Frame): void;
  found(hang: Hang): void;
}

interface Inquiry {
  /** Number of the query. */
  readonly number: number;
  readonly answers: Map<string, HostRankPositions>;
  readonly asked: readonly string[];
  /** Of the first query, where this is the second. */
  readonly first: Reading | null;
}

interface Reported {
  readonly operation: number;
  /** When. Waits that began later are others, of the same operation where a graph repeats it. */
  readonly atMs: number;
}

type State =
  | { readonly name: 'quiet' }
  | { readonly name: 'closed' }
  | { readonly name: 'asking'; readonly inquiry: Inquiry; readonly timeout: NodeJS.Timeout }
  | { readonly name: 'between'; readonly first: Reading; readonly timeout: NodeJS.Timeout };

export class HangJudge {
  readonly #options: HangJudgeOptions;
  #state: State = { name: 'quiet' };
  #queries = 0;
  /** Ranks have stalled since the second query was sent, so that its answers may lack them. */
  #again = false;
  readonly #reported = new RecentMap<Reported>(REMEMBERED);

  constructor(options: HangJudgeOptions) {
    this.#options = options;
  }

  /** Ranks of a host hang in an operation. */
  stalled(): void {
    if (this.#state.name === 'quiet') this.#ask(null, []);
    else if (this.#state.name === 'asking' && this.#state.inquiry.first !== null) this.#again = true;
  }

  answered(host: string, where: HostRankPositions): void {
    if (this.#state.name !== 'asking') return;
    const { number, answers, asked } = this.#state.inquiry;
    if (where.reading !== number || !asked.includes(host)) return;
    answers.set(host, where);
    if (asked.every((one) => answers.has(one))) this.#read(this.#state.inquiry);
  }

  /** The launcher ends the ranks: whoever waits from now on waits for one that has ended. */
  close(): void {
    this.#rest();
    this.#state = { name: 'closed' };
  }

  #rest(): void {
    if ('timeout' in this.#state) clearTimeout(this.#state.timeout);
    this.#state = { name: 'quiet' };
  }

  #ask(first: Reading | null, inspect: readonly number[]): void {
    const number = ++this.#queries;
    const asked = this.#options.hosts();
    const inquiry: Inquiry = { number, answers: new Map(), asked, first };
    const timeout = setTimeout(() => this.#read(inquiry), ANSWER_MS);
    this.#state = { name: 'asking', inquiry, timeout };
    const frame = makeFrame(FrameKind.rankPositions, {
      payload: encodeJson({ reading: number, inspect, arrivals: false, edges: true }),
    });
    for (const host of asked) this.#options.send(host, frame);
  }

  /** All have answered, or time is up. */
  #read({ answers, asked, first }: Inquiry): void {
    this.#rest();
    const reading = { answers, asked };
    if (first !== null) return this.#judge(first, reading);
    const inspect = blamedRanks(reading).slice(0, MAX_INSPECTED);
    const timeout = setTimeout(() => this.#ask(reading, inspect), BETWEEN_MS);
    this.#state = { name: 'between', first: reading, timeout };
  }

  #judge(first: Reading, second: Reading): void {
    const isOpen = this.#again || movedIntoHang(first, second);
    this.#again = false;
    for (const hang of judgeHangs(first, second)) {
      const name = `${hang.communicator}:${hang.verdict.communicator?.epoch ?? 0}`;
      const known = this.#reported.get(name);
      const { operation } = hang;
      const atMs = monotonicMs();
      const isOther = operation === known?.operation && atMs - hang.seconds * 1000 > known.atMs;
      if (known !== undefined && operation <= known.operation && !isOther) continue;
      this.#reported.set(name, { operation, atMs });
      this.#options.found(hang);
    }
    if (isOpen && this.#state.name === 'quiet') this.#ask(null, []);
  }
}

/** A rank hangs now in an operation that it had not begun at the first reading: its agent reports it once only. */
function movedIntoHang(first: Reading, second: Reading): boolean {
  for (const [host, { communicators }] of second.answers) {
    const before = first.answers.get(host)?.communicators ?? [];
    for (const { communicator, epoch, ranks } of communicators) {
      const earlier = before.find((one) => one.communicator === communicator && one.epoch === epoch);
      for (const { hangs, rank, operation } of ranks) {
        if (hangs && earlier?.ranks.find((one) => one.rank === rank)?.operation !== operation) return true;
      }
    }
  }
  return false;
}
