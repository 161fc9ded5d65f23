/** Asks all agents where their ranks are: for `ncclrun status`, and for who is regularly late. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import type { Reading } from '../hang/table.ts';
import type { HostClock, TimedAnswer } from '../straggler/traces.ts';

/** An agent that has not answered by then is not waited for. */
const ANSWER_MS = 1000;
const BETWEEN_MS = 250;
/** How often the clocks of several hosts are read: the quickest answer tells most. */
const CLOCK_READINGS = 6;
/** Above the numbers of the hang judge's queries. */
const FIRST_QUERY = 2 ** 32;

interface PositionReaderOptions {
  /** Hosts that have ranks and may answer. */
  hosts(): readonly string[];
  send(host: string, frame: Frame): void;
}

/** With what it says of the hosts' clocks. */
interface TimedReading extends Reading {
  readonly clocks: ReadonlyMap<string, HostClock>;
}

interface Query {
  readonly answers: Map<string, HostRankPositions>;
  readonly asked: readonly string[];
  readonly timeout: NodeJS.Timeout;
  readonly clocks: Map<string, HostClock>;
  readonly askedUs: number;
  readonly resolve: (reading: TimedReading) => void;
}

export class PositionReader {
  readonly #options: PositionReaderOptions;
  readonly #queries = new Map<number, Query>();
  readonly #waits = new Set<() => void>();
  #last = FIRST_QUERY;

  constructor(options: PositionReaderOptions) {
    this.#options = options;
  }

  async readTwice(): Promise<readonly [first: Reading, second: Reading]> {
    const first = await this.#read(false);
    await this.#pause();
    return [first, await this.#read(false)];
  }

  /** By host, with the times at which ranks began their last collectives. */
  async readArrivals(): Promise<ReadonlyMap<string, TimedAnswer>> {
    const clocks = new Map<string, HostClock>();
    const note = (reading: TimedReading): void => {
      for (const [host, clock] of reading.clocks)
        if (clock.errorUs < (clocks.get(host)?.errorUs ?? Number.POSITIVE_INFINITY)) clocks.set(host, clock);
    };
    const more = this.#options.hosts().length > 1 ? CLOCK_READINGS - 1 : 0;
    for (let reading = 0; reading < more; reading++) note(await this.#read(false));
    const last = await this.#read(true);
    note(last);
    const timed = new Map<string, TimedAnswer>();
    for (const [host, where] of last.answers) {
      const clock = clocks.get(host);
      if (clock !== undefined) timed.set(host, { where, clock });
    }
    return timed;
  }

  answered(host: string, where: HostRankPositions): void {
    const query = this.#queries.get(where.reading);
    if (query === undefined || !query.asked.includes(host)) return;
    query.answers.set(host, where);
    const answeredUs = nowUs();
    // It read its clock at some moment in between.
    const offsetUs = where.monotonicUs - (query.askedUs + answeredUs) / 2;
    query.clocks.set(host, { offsetUs, errorUs: (answeredUs - query.askedUs) / 2 });
    if (query.answers.size === query.asked.length) this.#settle(where.reading);
  }

  /** No host answers any more. */
  close(): void {
    for (const number of this.#queries.keys()) this.#settle(number);
    for (const end of this.#waits) end();
  }

  #read(arrivals: boolean): Promise<TimedReading> {
    const { promise, resolve } = Promise.withResolvers<TimedReading>();
    const reading = ++this.#last;
    const asked = this.#options.hosts();
    const timeout = setTimeout(() => this.#settle(reading), ANSWER_MS);
    this.#queries.set(reading, {
      answers: new Map(),
      clocks: new Map(),
      askedUs: nowUs(),
      asked,
      timeout,
      resolve,
    });
    const frame = makeFrame(FrameKind.rankPositions, {
      payload: encodeJson({ reading, inspect: [], arrivals, edges: arrivals }),
    });
    for (const host of asked) this.#options.send(host, frame);
    if (asked.length === 0) this.#settle(reading);
    return promise;
  }

  #settle(reading: number): void {
    const query = this.#queries.get(reading);
    if (query === undefined) return;
    clearTimeout(query.timeout);
    this.#queries.delete(reading);
    const { answers, asked, clocks } = query;
    query.resolve({ answers, asked, clocks });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timeout);
        this.#waits.delete(end);
        resolve();
      };
      const timeout = setTimeout(end, BETWEEN_MS);
      this.#waits.add(end);
    });
  }
}

function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
