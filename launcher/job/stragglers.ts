/** Looks at regular intervals who begins operations late, in every communicator that goes on, and which link between hosts is slow. */
import type { Verdict } from '../model/hang.ts';
import { linkEvidence, rankEvidence } from '../straggler/evidence.ts';
import type { Lateness } from '../straggler/lateness.ts';
import { describeLateness, latenessIn } from '../straggler/lateness.ts';
import { linkEndText, slowLinkVerdict } from '../straggler/link-verdict.ts';
import { describeSlowLink, linksBetween, slowLinkIn } from '../straggler/links.ts';
import { StragglerTracker } from '../straggler/tracker.ts';
import { tracesOf } from '../straggler/traces.ts';
import type { CommunicatorTrace, TimedAnswer } from '../straggler/traces.ts';
import { endText, stragglerVerdict } from '../straggler/verdict.ts';
import { RecentMap } from '../../control/rendezvous/memory.ts';
import type { PositionReader } from './status.ts';

/** Communicators whose windows are remembered. */
const REMEMBERED = 1024;

interface StragglersOptions {
  readonly positions: PositionReader;
  readonly intervalMs: number;
  found(verdict: Verdict): void;
  ended(message: string): void;
}

interface Watched {
  readonly tracker: StragglerTracker<Lateness>;
  /** Number of the last collective that was looked at. */
  number: number;
}

export class Stragglers {
  readonly #options: StragglersOptions;
  readonly #comms = new RecentMap<Watched>(REMEMBERED);
  /** The answers of the last window, by host. */
  #before: ReadonlyMap<string, TimedAnswer> = new Map();
  readonly #links = new StragglerTracker(describeSlowLink);
  #timer: NodeJS.Timeout | null = null;
  #isReading = false;

  constructor(options: StragglersOptions) {
    this.#options = options;
  }

  /** The ranks run. */
  begin(): void {
    const { intervalMs } = this.#options;
    if (intervalMs > 0) this.#timer ??= setInterval(() => void this.#look(), intervalMs).unref();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #look(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    const timed = await this.#options.positions.readArrivals();
    this.#isReading = false;
    if (this.#timer === null) return;
    for (const trace of tracesOf(timed)) this.#judge(trace, timed);
    this.#judgeLinks(timed);
    this.#before = timed;
  }

  #judge(trace: CommunicatorTrace, answers: ReadonlyMap<string, TimedAnswer>): void {
    const name = `${trace.id}:${trace.epoch}`;
    const watched = this.#comms.get(name) ?? { tracker: new StragglerTracker(describeLateness), number: 0 };
    this.#comms.set(name, watched);
    if (watched.number >= trace.number) return; // nothing has begun since
    watched.number = trace.number;
    const said = watched.tracker.add(latenessIn(trace));
    if (said === null) return;
    if (said.news === 'ends') return this.#options.ended(endText(said.found, trace.id));
    const evidence = said.found.ranks.slice(0, 4).flatMap((rank) => rankEvidence(rank, this.#before, answers));
    return this.#options.found(stragglerVerdict(trace, said.found, evidence));
  }

  #judgeLinks(answers: ReadonlyMap<string, TimedAnswer>): void {
    const said = this.#links.add(slowLinkIn(linksBetween(this.#before, answers)));
    if (said === null) return;
    if (said.news === 'ends') this.#options.ended(linkEndText(said.found));
    else {
      const { nic, link } = said.found;
      const ends = nic === null ? [link.from, link.to] : [nic];
      const evidence = ends.flatMap((end) => linkEvidence(end, this.#before, answers));
      this.#options.found(slowLinkVerdict(said.found, evidence));
    }
  }
}
