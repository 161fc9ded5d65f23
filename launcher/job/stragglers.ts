/** Looks at regular intervals who begins operations late, in every communicator that goes on, and which link between hosts is slow. */
import type { Evidence, Verdict } from '../model/hang.ts';
import type { Lateness } from '../straggler/lateness.ts';
import { describeLateness, latenessIn } from '../straggler/lateness.ts';
import { linkEndText, slowLinkVerdict } from '../straggler/link-verdict.ts';
import { describeSlowLink, linksBetween, slowLinkIn } from '../straggler/links.ts';
import { StragglerTracker } from '../straggler/tracker.ts';
import { tracesOf } from '../straggler/traces.ts';
import type { CommunicatorTrace, TimedAnswer } from '../straggler/traces.ts';
import { endText, stragglerVerdict } from '../straggler/verdict.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import { RecentMap } from '../../control/rendezvous/memory.ts';
import type { PositionReader } from './status.ts';

/** Communicators whose windows are remembered. */
const REMEMBERED = 1024;
/** Of one CPU: less of it that a hypervisor gives to others slows nobody down. */
const MIN_STOLEN = 0.05;

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
    const evidence = said.found.ranks.slice(0, 4).flatMap((rank) => this.#evidenceOf(rank, answers));
    return this.#options.found(stragglerVerdict(trace, said.found, evidence));
  }

  #judgeLinks(answers: ReadonlyMap<string, TimedAnswer>): void {
    const said = this.#links.add(slowLinkIn(linksBetween(this.#before, answers)));
    if (said === null) return;
    if (said.news === 'ends') this.#options.ended(linkEndText(said.found));
    else this.#options.found(slowLinkVerdict(said.found));
  }

  /** What slows the process of a rank down, as its host's kernel says, since the last window. */
  #evidenceOf(rank: number, answers: ReadonlyMap<string, TimedAnswer>): Evidence[] {
    for (const [host, { where }] of answers) {
      const now = where.processes.find(({ jobRank }) => jobRank === rank);
      if (now === undefined) continue;
      const earlier = this.#before.get(host)?.where;
      const before = earlier?.processes.find(({ jobRank }) => jobRank === rank);
      const about = { host, subject: `rank ${rank}` };
      const evidence: Evidence[] = [];
      const held = (now.throttled ?? 0) - (before?.throttled ?? now.throttled ?? 0);
      if (held > 0) evidence.push({ kind: 'throttled', ...about, value: held, unit: 'periods' });
      if (now.state === 'uninterruptible')
        evidence.push({ kind: 'process-state', ...about, value: now.state, unit: null });
      const stolen = stolenPart(earlier, where);
      if (stolen >= MIN_STOLEN)
        evidence.push({ kind: 'stolen', host, subject: host, value: Math.round(stolen * 100), unit: '% of a CPU' });
      return evidence;
    }
    return [];
  }
}

/** How much of one CPU others have taken between two answers of a host. */
function stolenPart(before: HostRankPositions | undefined, now: HostRankPositions): number {
  if (before === undefined || before.stolenMs === null || now.stolenMs === null) return 0;
  const passedMs = (now.monotonicUs - before.monotonicUs) / 1000;
  return passedMs <= 0 ? 0 : (now.stolenMs - before.stolenMs) / passedMs;
}
