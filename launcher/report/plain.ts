/** The reporter for people: ranks' output where it belongs, everything of ours to stderr. */
import { hangStackLines } from './hang-stack-text.ts';
import { hangText, isPrinted, verdictText } from './hang-text.ts';
import { unreachableEvent } from './unreachable-event.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import { FailureError } from '../model/failure-error.ts';
import type { JobRequest, JobResult, RankMap, RankRange, Reporter } from '../model/types.ts';
import type { Paint } from '../text/colour.ts';
import { Fold } from './fold.ts';
import { isInForeground, isTerminal } from '../model/terminal.ts';
import { Lane, type LaneChunk } from './lane.ts';
import { Live } from './live.ts';
import { LiveText } from './live-text.ts';
import { Shown } from './shown.ts';
import type { StandardStreams } from './standard-streams.ts';
import { failureBlock, ourLine, resultSummary } from './summary.ts';
import { tagOf } from './tag.ts';
import { xidText } from './xid-text.ts';
import { bindingText, megabytes, verboseText, waitingText } from './verbose-text.ts';
import { counted } from '../text/counted.ts';

export interface PlainOptions {
  readonly streams: StandardStreams;
  readonly tagOutput: JobRequest['tagOutput'];
  readonly timestamps: boolean;
  /** False: the ranks' output goes elsewhere. */
  readonly shown: boolean;
  /** Whose output is shown; null: everybody's. */
  readonly shownRanks: readonly RankRange[] | null;
  /** stdout is taken by a JSON result: the ranks' stdout goes to stderr. */
  readonly stdoutTaken: boolean;
  /** stderr is a terminal that shows a line of what is going on. */
  readonly live: boolean;
  /** Equal lines of several ranks are shown once. */
  readonly fold: boolean;
  readonly verbose: boolean;
  /** Only failures and what was asked for are printed. */
  readonly quiet: boolean;
  /** A hang is a failure, which is printed in any case. */
  readonly hangFails: boolean;
  /** Of a stream that is a terminal or none. */
  readonly paint: (isTerminal: boolean) => Paint;
}

export class PlainReporter implements Reporter {
  readonly #options: PlainOptions;
  readonly #stdout: Lane;
  readonly #stderr: Lane;
  /** --fold, for each stream, once it is known how many ranks there are. */
  #folds: { readonly stdout: Fold; readonly stderr: Fold } | null = null;
  readonly #shown = new Shown();
  #ranks = 1;
  #reported: Failure | null = null;
  #isStagingReported = false;
  #liveText: LiveText | null = null;
  readonly #live: Live | null;
  #paint: Paint | null = null;

  constructor(options: PlainOptions) {
    this.#options = options;
    const { streams } = options;
    this.#stderr = new Lane(
      streams.stderr,
      this.#prefixes(() => this.#colours),
    );
    const paint = once(() => options.paint(streams.stdoutIsTerminal()));
    this.#stdout = options.stdoutTaken ? this.#stderr : new Lane(streams.stdout, this.#prefixes(paint));
    this.#live = options.live ? this.#startLive() : null;
  }

  /** Rejects with a FailureError (usage) if ranks are to be shown that there are not. */
  async prepare(map: RankMap): Promise<void> {
    const { length: ranks } = map.ranks;
    const beyond = this.#options.shownRanks?.find(({ last }) => last >= ranks);
    if (beyond === undefined) return;
    const message = `--output-ranks names rank ${beyond.last}; this job has ${ranks === 1 ? 'rank 0 only' : `ranks 0 to ${ranks - 1}`}`;
    throw new FailureError({ type: 'usage', message, remedy: 'name ranks of the job, or start more' });
  }

  async output(chunk: OutputChunk): Promise<void> {
    if (!this.#shows(chunk.rank)) return;
    if (chunk.stream === 'stderr' || this.#options.stdoutTaken) this.#shown.chunk(chunk);
    const lane = chunk.stream === 'stdout' ? this.#stdout : this.#stderr;
    await (this.#folds?.[chunk.stream] ?? lane).output(chunk);
  }

  #shows(rank: number): boolean {
    const { shown, shownRanks } = this.#options;
    return shown && shownRanks?.some(({ first, last }) => first <= rank && rank <= last) !== false;
  }

  event(event: JobEvent): void {
    this.#liveText?.event(event);
    if (this.#options.verbose) this.#printLine(verboseText(event));
    switch (event.type) {
      case 'job-started':
        this.#ranks = event.ranks;
        if (this.#options.fold && event.ranks > 1) this.#startFolding(event.ranks);
        return;
      case 'rank-exited':
        this.#folds?.stdout.rankEnded(event.rank);
        this.#folds?.stderr.rankEnded(event.rank);
        this.#stdout.rankEnded(event.rank);
        this.#stderr.rankEnded(event.rank);
        return;
      case 'failure':
        if (event.primary) this.#reportFailure(event.failure);
        return;
      case 'notice':
        if (!this.#options.quiet) this.#printLine(event.message);
        return;
      case 'host-staging':
        if (!this.#options.quiet) this.#reportStaging(event);
        return;
      case 'waiting':
        if (this.#live?.showsStart !== true && !this.#options.quiet) this.#printLine(waitingText(event));
        return;
      case 'restart':
        this.#restart(event);
        return;
      case 'shrink':
        this.#reportShrink(event);
        return;
      case 'hang':
        if (this.#options.hangFails) return;
        this.#printLine(hangText(event));
        this.#printLines(hangStackLines(event.verdict));
        return;
      case 'hang-stacks':
        this.#printLines(hangStackLines(event));
        return;
      case 'verdict':
        if (isPrinted(event.verdict)) this.#printLine(verdictText(event.verdict));
        return;
      case 'xid':
        this.#printLine(xidText(event));
        return;
      case 'binding':
        this.#printLine(bindingText(event));
        return;
      case 'phase':
      case 'host-connecting':
      case 'host-remote-shell':
      case 'host-step':
      case 'host-up':
      case 'host-ended':
      case 'rank-started':
      case 'communicator':
      case 'network':
      case 'tuning':
      case 'signal':
      case 'job-ended':
        return;
      default:
        unreachableEvent(event);
    }
  }

  /** The terminal shows what is typed, newline included; a file or pipe has none of it. */
  typed(): void {
    const { streams, stdoutTaken } = this.#options;
    if (!stdoutTaken && this.#stdout.lineOpen && streams.stdoutIsTerminal()) this.#stdout.lineEnded();
    if (this.#stderr.lineOpen && streams.stderrIsTerminal()) this.#stderr.lineEnded();
  }

  async result(result: JobResult): Promise<void> {
    this.#live?.end();
    this.#endFolding();
    if (this.#ranks > 1) {
      this.#stdout.endLine();
      this.#stderr.endLine();
    }
    if (!result.ok) this.#print(resultSummary(result, this.#shown.buried ? null : this.#reported, this.#colours));
    await Promise.all([this.#options.streams.stdout.flush(), this.#options.streams.stderr.flush()]);
  }

  /** One line for all of them: the copies are made at once, and once. */
  #reportStaging({ host, bytes }: Extract<JobEvent, { type: 'host-staging' }>): void {
    if (this.#isStagingReported) return;
    this.#isStagingReported = true;
    this.#printLine(
      `${host} has no ncclrun of this version: copying it (${megabytes(bytes)}) to all hosts that lack it, once`,
    );
  }

  #reportFailure(failure: Failure): void {
    this.#reported = failure;
    this.#print(failureBlock(failure, this.#colours, this.#shown.trimmed(failure)));
    this.#shown.reported();
  }

  #printLine(text: string | null): void {
    if (text !== null) this.#print(ourLine(text, this.#colours));
  }

  #printLines(lines: readonly string[]): void {
    for (const line of lines) this.#printLine(line);
  }

  /** Whoever reads stderr may be gone; that is no reason to end the job for a message of ours. */
  #print(text: string): void {
    if (text === '') return;
    this.#endFolding(); // what ranks wrote before comes before
    this.#stderr.endLine();
    if (this.#stdout.lineOpen && this.#options.streams.onOneTerminal()) this.#stdout.endLine();
    this.#options.streams.stderr.printPainted(text).catch(() => {});
  }

  #restart({ attempt, limit }: Extract<JobEvent, { type: 'restart' }>): void {
    this.#endFolding();
    for (const lane of [this.#stdout, this.#stderr]) lane.ranksAgain();
    if (this.#folds !== null) this.#startFolding(this.#ranks);
    this.#printLine(`all ranks are started again (${attempt} of at most ${limit})`);
  }

  #reportShrink({ failure, left }: Extract<JobEvent, { type: 'shrink' }>): void {
    this.#print(failureBlock(failure, this.#colours, this.#shown.trimmed(failure)));
    this.#printLine(
      left === 0 ? 'other ranks ended well' : `${counted(left, 'rank')} ${left === 1 ? 'goes' : 'go'} on without it`,
    );
  }

  #startFolding(count: number): void {
    const ranks = Array.from({ length: count }, (_, rank) => rank).filter((rank) => this.#shows(rank));
    this.#folds = { stdout: new Fold(this.#stdout, ranks), stderr: new Fold(this.#stderr, ranks) };
  }

  #endFolding(): void {
    this.#folds?.stdout.flush();
    this.#folds?.stderr.flush();
  }

  #startLive(): Live {
    const { streams } = this.#options;
    const text = new LiveText();
    this.#liveText = text;
    return new Live({
      text,
      stderr: streams.stderr,
      stdout: isTerminal(1) ? streams.stdout : null,
      columns: () => streams.columns(),
      mayDraw: () => !this.#stderr.lineOpen && !this.#stdout.lineOpen && isInForeground(),
      paint: () => this.#colours,
    });
  }

  get #colours(): Paint {
    this.#paint ??= this.#options.paint(this.#options.streams.stderrIsTerminal());
    return this.#paint;
  }

  #prefixes(paint: () => Paint): (chunk: LaneChunk) => string {
    return (chunk) => tagOf(chunk, this.#ranks > 1, this.#options, paint());
  }
}

/** Opening a stream to see whether it is a terminal waits until something is written to it. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
