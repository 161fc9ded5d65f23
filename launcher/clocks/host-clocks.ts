/** Reads the clocks of hosts by short questions to their agents, and keeps what it learns for the time of a job. */
import { decodeClock } from '../../control/messages/payload.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { CLOCK_DRIFT, ClockBounds } from './bounds.ts';
import type { HostClock } from '../model/recorder.ts';

/** Readings of one clock in a row, unless one is good enough: the quickest answer tells most. */
const READINGS = 16;
const ENOUGH_NS = 50_000;
/** Clocks that are read at the same time: more would wait for each other in the launcher. */
const AT_ONCE = 8;
/** A host that has not answered by then is not asked again this time. */
const ANSWER_MS = 1000;
/** Numbers of questions are 32 bits wide. */
const REQUESTS = 2 ** 32;

/** How the CLOCK_MONOTONIC of a host relates to the launcher's at some moment. */
export interface KnownClock extends HostClock {
  /** Hosts with the same one have the same clock. */
  readonly id: string;
  /** When that was so, by the launcher's clock. */
  readonly atNs: number;
  /** By how much it may get more wrong in each second before and after. */
  readonly drift: number;
}

interface HostClocksOptions {
  /** The launcher's own, by clockId. */
  readonly ownId: string | null;
  /** What the agent of a host says of its clock, by clockId. */
  idOf(host: string): string | null;
  send(host: string, frame: Frame): void;
}

interface Question {
  readonly host: string;
  readonly askedNs: number;
  readonly timeout: NodeJS.Timeout;
  /** Null: no answer has come. */
  readonly resolve: (clock: KnownClock | null) => void;
}

export class HostClocks {
  readonly #options: HostClocksOptions;
  readonly #bounds = new Map<string, ClockBounds>();
  readonly #open = new Map<number, Question>();
  #last = 0;
  #isClosed = false;

  constructor(options: HostClocksOptions) {
    this.#options = options;
  }

  /** Resolves once each of their clocks is known as well as may be, or its host does not answer. */
  async read(hosts: readonly string[]): Promise<void> {
    const oneOfEach = new Map(hosts.map((host) => [this.#idOf(host), host])).values();
    const worker = async (): Promise<void> => {
      for (const host of oneOfEach) await this.#readOne(host);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** Null: it was never read. */
  of(host: string): KnownClock | null {
    const id = this.#idOf(host);
    const atNs = nowNs();
    const estimate = this.#bounds.get(id)?.at(atNs);
    if (estimate === undefined) return null;
    // Copies of a virtual machine have one id and clocks of their own.
    const isOwn = id === this.#options.ownId && Math.abs(estimate.offsetNs) <= estimate.errorNs;
    return isOwn ? { id, atNs, offsetNs: 0, errorNs: 0, drift: 0 } : { id, atNs, ...estimate, drift: CLOCK_DRIFT };
  }

  /** @throws ProtocolError */
  receive(host: string, { request, payload }: Frame): void {
    const itsNs = decodeClock(payload);
    const question = this.#open.get(request);
    if (question === undefined || question.host !== host) return;
    const reading = { askedNs: question.askedNs, answeredNs: nowNs(), itsNs };
    const id = this.#idOf(host);
    const known = this.#bounds.get(id);
    if (known === undefined) this.#bounds.set(id, new ClockBounds(reading));
    else known.add(reading);
    this.#settle(request, this.of(host));
  }

  /** No host answers any more. */
  close(): void {
    this.#isClosed = true;
    for (const request of this.#open.keys()) this.#settle(request, null);
  }

  async #readOne(host: string): Promise<void> {
    for (let reading = 0; reading < READINGS; reading++) {
      const clock = await this.#ask(host);
      if (clock === null || clock.errorNs <= ENOUGH_NS) return;
    }
  }

  #ask(host: string): Promise<KnownClock | null> {
    if (this.#isClosed) return Promise.resolve(null);
    const { promise, resolve } = Promise.withResolvers<KnownClock | null>();
    const request = (this.#last = (this.#last + 1) % REQUESTS);
    const timeout = setTimeout(() => this.#settle(request, null), ANSWER_MS);
    this.#open.set(request, { host, askedNs: nowNs(), timeout, resolve });
    this.#options.send(host, makeFrame(FrameKind.clock, { request }));
    return promise;
  }

  #settle(request: number, clock: KnownClock | null): void {
    const question = this.#open.get(request);
    if (question === undefined) return;
    this.#open.delete(request);
    clearTimeout(question.timeout);
    question.resolve(clock);
  }

  #idOf(host: string): string {
    return this.#options.idOf(host) ?? `clock of ${host}`;
  }
}

/** CLOCK_MONOTONIC. */
function nowNs(): number {
  return Number(process.hrtime.bigint());
}
