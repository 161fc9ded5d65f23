/** All verdicts of an attempt: of hangs, of calls that differ, of what failed first, of who does not come. */
import type { HostRankPositions } from '../../control/messages/hang.ts';
import type { AgentReport } from '../../control/messages/link.ts';
import {
  differenceVerdict,
  hostSilentVerdict,
  initMissingVerdict,
  isWhole,
  leftVerdict,
  rankDeadVerdict,
  showsDifference,
} from '../hang/ends.ts';
import { DifferingCalls } from '../hang/differing-calls.ts';
import type { Failure } from '../model/failure.ts';
import type { Verdict } from '../model/hang.ts';
import type { Reading } from '../hang/table.ts';
import type { UntimedEvent } from './job-parts.ts';

/** Hosts that say nothing about differing calls by then are not waited for. */
const ANSWER_MS = 300;
/** Verdicts that the result has at most. */
const MAX_KEPT = 256;

interface JobVerdictsOptions {
  emit(event: UntimedEvent): void;
  /** Ranks of the job on a host. */
  ranksOn(host: string): readonly number[];
}

/** A communicator whose ranks' calls differ. */
interface Difference {
  readonly calls: DifferingCalls;
  readonly sentence: string;
  readonly timeout: NodeJS.Timeout;
}

export class JobVerdicts {
  readonly #options: JobVerdictsOptions;
  readonly #all: Verdict[] = [];
  /** What is known of the calls of communicators in which ranks have failed. */
  readonly #calls = new Map<string, DifferingCalls>();
  #failure: { readonly failure: Failure; readonly timeout: NodeJS.Timeout } | null = null;
  readonly #differences = new Map<string, Difference>();
  /** The mismatch that was reported of a communicator. */
  readonly #mismatched = new Map<string, Verdict>();
  /** Communicators that ranks have left in which others wait for them. */
  readonly #deserted = new Set<string>();
  readonly #last = new Map<number, HostRankPositions>();

  constructor(options: JobVerdictsOptions) {
    this.#options = options;
  }

  get all(): readonly Verdict[] {
    return this.#all;
  }

  event(event: UntimedEvent): void {
    if (event.type === 'hang') this.#keep(event.verdict, false);
    if (event.type === 'verdict') this.#keep(event.verdict, event.replaces);
    if (event.type === 'shrink' || (event.type === 'failure' && event.primary)) this.#failed(event.failure);
  }

  /** What an agent knows of a communicator whose calls differ, or of a rank that failed. */
  report(host: string, report: Extract<AgentReport, { type: 'calls-differ' | 'left-behind' | 'last-position' }>): void {
    const { where } = report;
    if (report.type === 'last-position') this.#last.set(report.rank, where);
    if (report.type === 'left-behind') this.#left(host, report);
    for (const { communicator, epoch } of where.communicators) {
      const name = `${communicator}:${epoch}`;
      const calls = this.#calls.get(name) ?? new DifferingCalls();
      this.#calls.set(name, calls);
      calls.add(host, where, name);
      if (report.type === 'calls-differ') this.#begin(name, calls, report.sentence);
      if (report.type === 'last-position' && showsDifference(calls.reading, communicator, epoch))
        this.#begin(name, calls, 'the ranks’ calls differ');
      if (this.#differences.has(name) && isWhole(calls.reading)) this.#settle(name);
    }
  }

  #left(host: string, { left, where }: Extract<AgentReport, { type: 'left-behind' }>): void {
    const name = `${left.communicator}:${left.epoch}`;
    if (this.#deserted.has(name) || this.#mismatched.has(name)) return;
    this.#deserted.add(name);
    clearTimeout(this.#differences.get(name)?.timeout);
    this.#differences.delete(name);
    this.#say(leftVerdict(left, readingOf(host, where)));
  }

  missing(what: string, missing: readonly string[], ranks: readonly number[], seconds: number): void {
    this.#say(initMissingVerdict(what, missing, ranks, seconds));
  }

  /** Nothing more is waited for. */
  close(): void {
    for (const name of this.#differences.keys()) this.#settle(name);
    this.#tellFailure();
  }

  #begin(name: string, calls: DifferingCalls, sentence: string): void {
    if (this.#isClear(name) || this.#deserted.has(name) || this.#differences.has(name)) return;
    const timeout = setTimeout(() => this.#settle(name), ANSWER_MS);
    this.#differences.set(name, { calls, sentence, timeout });
  }

  #settle(name: string): void {
    const difference = this.#differences.get(name);
    if (difference === undefined) return;
    clearTimeout(difference.timeout);
    this.#differences.delete(name);
    const known = this.#mismatched.get(name);
    const verdict = differenceVerdict(difference.calls.reading, difference.sentence);
    if (known === undefined) this.#say(verdict);
    else if (known.confidence === 'suspected' && verdict.confidence !== 'suspected') this.#say(verdict, true);
  }

  /** Nothing that ranks have called can make its verdict clearer. */
  #isClear(name: string): boolean {
    const known = this.#mismatched.get(name);
    return known !== undefined && known.confidence !== 'suspected';
  }

  /** Ranks may have failed for calls that differ, which other hosts say a moment later. */
  #failed(failure: Failure): void {
    this.#tellFailure();
    this.#failure = { failure, timeout: setTimeout(() => this.#tellFailure(), ANSWER_MS) };
  }

  /** What follows from differing calls or a rank that has left has its verdict. */
  #tellFailure(): void {
    if (this.#failure === null) return;
    const { failure, timeout } = this.#failure;
    clearTimeout(timeout);
    this.#failure = null;
    if (this.#mismatched.size > 0 || this.#differences.size > 0 || this.#deserted.size > 0) return;
    switch (failure.type) {
      case 'rank-exit':
      case 'rank-signal': {
        const { rank, host, pid } = failure;
        const phrase =
          failure.type === 'rank-exit' ? `exited with status ${failure.exitCode}` : `died of ${failure.signal}`;
        return this.#say(rankDeadVerdict({ rank, host, pid, phrase, where: this.#last.get(rank) ?? null }));
      }
      case 'host-lost': {
        const { host, cause, silentMs } = failure;
        const reason = silentMs === null ? cause : `silent for ${Math.round(silentMs / 100) / 10} s`;
        return this.#say(hostSilentVerdict(host, this.#options.ranksOn(host), reason));
      }
      default:
        return undefined;
    }
  }

  #say(verdict: Verdict, replaces = false): void {
    this.#options.emit({ type: 'verdict', verdict, replaces });
  }

  #keep(verdict: Verdict, replaces: boolean): void {
    const { communicator, kind } = verdict;
    const name = communicator === null ? null : `${communicator.id}:${communicator.epoch}`;
    const before = name === null ? undefined : this.#mismatched.get(name);
    if (name !== null && kind.startsWith('mismatch-')) this.#mismatched.set(name, verdict);
    const replaced = replaces && before !== undefined ? this.#all.indexOf(before) : -1;
    if (replaced >= 0) this.#all[replaced] = verdict;
    else if (this.#all.length < MAX_KEPT) this.#all.push(verdict);
  }
}

function readingOf(host: string, where: HostRankPositions): Reading {
  return { answers: new Map([[host, where]]), asked: [host] };
}
