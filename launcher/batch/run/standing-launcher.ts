/**
 * A launcher process: in a session of its own, which outlives the scheduler. It runs one attempt after the other and keeps its agents in between. When
 * the scheduler is gone, the launcher finishes what it runs and exits.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Clock, Countdown } from '../../../control/clock.ts';
import { eachLine, newsIn, tell, type AttemptNews } from '../attempt/channel.ts';
import type { CalledAttempt } from './called-attempts.ts';

/** A process that has run so many attempts gives its place to a fresh one. */
const MAX_ATTEMPTS = 500;
/** A host that does not answer holds up no other one for longer. */
const LONGEST_START_MS = 2000;
/** An attempt that ends sooner is short. */
const SHORT_MS = 250;

export interface StandingLauncherOptions {
  /** Path of ncclrun. */
  readonly command: string;
  readonly clock: Clock;
  /** A descriptor of what gets all that the first attempt prints. */
  readonly output: number;
  /** The hosts of its attempts. */
  readonly place: string;
  /** The ranks of its first attempt have started, or that takes long. */
  started(): void;
  /** It has no attempt any more and can run another one. */
  free(launcher: StandingLauncher): void;
  /** It has no more to do with an attempt: it has said so, or it has exited, as `how` says. */
  letGo(attempt: CalledAttempt, how: string): void;
  /** The process has exited. */
  gone(launcher: StandingLauncher): void;
}

export class StandingLauncher {
  readonly #options: StandingLauncherOptions;
  readonly #child: ChildProcess;
  readonly #socket: Duplex | null;
  readonly #exited = Promise.withResolvers<void>();
  readonly #start: Start;
  #current: CalledAttempt | null = null;
  #attempts = 0;
  /** When the ranks of its first attempt started, or a later attempt began. */
  #since = 0;
  /** Its last attempt was short, or it has its first one. */
  #isShort = false;

  constructor(options: StandingLauncherOptions) {
    const { command, output } = options;
    this.#options = options;
    this.#start = new Start(options.clock, () => options.started());
    this.#child = spawn(command, ['batch-attempt'], { detached: true, stdio: ['ignore', output, output, 'pipe'] });
    const socket = this.#child.stdio[3];
    this.#socket = socket instanceof Duplex ? socket : null;
    if (this.#socket !== null) eachLine(this.#socket, (line) => this.#told(newsIn(line)));
    this.#child.once('error', ({ message }) => this.#gone(message));
    this.#child.once('exit', (code) => this.#gone(`exit status ${code ?? 'unknown'}`));
  }

  /** The hosts of its attempts. */
  get place(): string {
    return this.#options.place;
  }

  /** It runs an attempt that is likely to end soon. */
  get isSoonFree(): boolean {
    return this.#current !== null && this.#isShort && this.#lasted < SHORT_MS;
  }

  /** Resolves when the process is no more. */
  get exited(): Promise<void> {
    return this.#exited.promise;
  }

  run(called: CalledAttempt): void {
    const isLast = called.descriptor !== null || this.#attempts + 1 >= MAX_ATTEMPTS;
    const output = this.#attempts === 0 ? null : called.output;
    this.#since = this.#options.clock.now();
    this.#attempts += 1;
    this.#current = called;
    if (this.#socket !== null) tell(this.#socket, { directory: called.directory, output, isLast });
  }

  /** It exits once it has finished what it runs, and reports nothing of that. */
  end(): void {
    this.#current = null;
    this.#socket?.end();
  }

  #told(news: AttemptNews): void {
    const current = this.#current;
    if (current === null) return;
    if (news === 'begun') return void current.attempt.begun();
    this.#start.end();
    if (news === 'running') return this.#runs();
    this.#isShort = this.#lasted < SHORT_MS;
    this.#current = null;
    this.#options.free(this);
    return this.#options.letGo(current, 'another launcher has the attempt');
  }

  get #lasted(): number {
    return this.#options.clock.now() - this.#since;
  }

  #runs(): void {
    if (this.#attempts > 1) return;
    this.#since = this.#options.clock.now();
    this.#isShort = true;
  }

  #gone(how: string): void {
    const current = this.#current;
    this.#current = null;
    this.#start.end();
    this.#exited.resolve();
    this.#options.gone(this);
    if (current !== null) this.#options.letGo(current, how);
  }
}

/** The start of a process and its connections, which needs a processor, until it is over or waits for somebody else. */
class Start {
  readonly #limit: Countdown;
  readonly #over: () => void;
  #isOver = false;

  constructor(clock: Clock, over: () => void) {
    this.#over = over;
    this.#limit = clock.after(LONGEST_START_MS, () => this.end());
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#limit.cancel();
    this.#over();
  }
}
