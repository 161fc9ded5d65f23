/** Asks all agents where their ranks are: for `ncclrun status`, and for who is regularly late. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import type { Reading } from '../hang/table.ts';
import type { HostClocks } from '../clocks/host-clocks.ts';
import type { TimedAnswer } from '../straggler/traces.ts';

/** An agent that has not answered by then is not waited for. */
const ANSWER_MS = 1000;
const BETWEEN_MS = 250;
/** Above the numbers of the hang judge's queries. */
const FIRST_QUERY = 2 ** 32;

interface PositionReaderOptions {
  /** Hosts that have ranks and may answer. */
  hosts(): readonly string[];
  send(host: string, frame: Frame): void;
  readonly clocks: HostClocks;
}

interface Query {
  readonly answers: Map<string, HostRankPositions>;
  readonly asked: readonly string[];
  readonly timeout: NodeJS.Timeout;
  readonly resolve: (reading: Reading) => void;
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
    const { clocks } = this.#options;
    await clocks.read(this.#options.hosts());
    const { answers } = await this.#read(true);
    const timed = new Map<string, TimedAnswer>();
    for (const [host, where] of answers) {
      const clock = clocks.of(host);
      if (clock !== null) timed.set(host, { where, clock });
    }
    return timed;
  }

  answered(host: string, where: HostRankPositions): void {
    const query = this.#queries.get(where.reading);
    if (query === undefined || !query.asked.includes(host)) return;
    query.answers.set(host, where);
    if (query.answers.size === query.asked.length) this.#settle(where.reading);
  }

  /** No host answers any more. */
  close(): void {
    for (const number of this.#queries.keys()) this.#settle(number);
    for (const end of this.#waits) end();
  }

  #read(arrivals: boolean): Promise<Reading> {
    const { promise, resolve } = Promise.withResolvers<Reading>();
    const reading = ++this.#last;
    const asked = this.#options.hosts();
    const timeout = setTimeout(() => this.#settle(reading), ANSWER_MS);
    this.#queries.set(reading, { answers: new Map(), asked, timeout, resolve });
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
    const { answers, asked } = query;
    query.resolve({ answers, asked });
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
