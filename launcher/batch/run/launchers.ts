/** The launchers of attempts: those that run one, those that wait for another on the same hosts, and those that an earlier scheduler has left. */
import { closeSync, fstatSync, mkdirSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import type { Clock, Countdown } from '../../../control/clock.ts';
import { isAlive, type ProcessIdentity } from '../attempt/process-identity.ts';
import { usageError } from '../../model/usage-error.ts';
import { errorCode } from '../attempt/error-code.ts';
import { diskFailure } from '../store/disk-failure.ts';
import { type AttemptOrder, type AttemptRecords, recordsIn } from '../attempt/records.ts';
import { messageOf } from '../../../control/message-of.ts';
import { CalledAttempts, type CalledAttempt } from './called-attempts.ts';
import { IdleLaunchers } from './idle-launchers.ts';
import { type AttemptHandler, OwnAttempt } from './own-attempt.ts';
import { StandingLauncher, type StandingLauncherOptions } from './standing-launcher.ts';

/** What another attempt would meet with, too. */
const HOPELESS: ReadonlySet<string> = new Set([
  'EACCES',
  'EPERM',
  'ENOTDIR',
  'EISDIR',
  'EROFS',
  'ELOOP',
  'ENAMETOOLONG',
  'EEXIST',
]);
/** How often a launcher that is not our child is looked at. */
const LOOK_MS = 250;
/** Hosts that have lost their launcher end its ranks within a lease of 5 s and a heartbeat; twice that is safe. */
const LEASE_OVER_MS = 12_000;
/** A launcher that waits takes a moment to let go of its agents. */
const GOODBYE_MS = 5000;
/** Processes that start share the processors: with more of them at once, each takes longer, and none starts sooner. */
const MAX_STARTING = 2 * availableParallelism();
const BETWEEN_LOOKS_MS = 50;

/** The order for an attempt's launcher, which file gets what it prints, and where its ranks run. */
export interface AttemptPlan {
  readonly order: AttemptOrder;
  readonly output: string;
  readonly hosts: readonly string[];
}

interface LaunchersOptions {
  /** Path of ncclrun. */
  readonly command: string;
  /** Where each attempt has its directory. */
  readonly attempts: string;
  readonly clock: Clock;
}

export class Launchers {
  readonly #options: LaunchersOptions;
  readonly #looks = new Set<Countdown>();
  readonly #all = new Set<StandingLauncher>();
  readonly #idle: IdleLaunchers;
  readonly #called = new CalledAttempts();
  #starting = 0;
  #look: Countdown | null = null;

  constructor(options: LaunchersOptions) {
    this.#options = options;
    this.#idle = new IdleLaunchers(options.clock);
  }

  recordsOf(task: number, attempt: number): AttemptRecords {
    return recordsIn(this.#options.attempts, task, attempt);
  }

  /**
   * Has a launcher run an attempt: one that has agents on its hosts, or a new one, as soon as few enough are about to start. Throws a FailureError
   * (usage) where it can never be begun, else as node:fs does.
   */
  start(task: number, { order, output, hosts }: AttemptPlan, handler: AttemptHandler): void {
    const records = this.recordsOf(task, order.attempt);
    writeOrder(records, order);
    const called = {
      attempt: new OwnAttempt(records, handler),
      directory: records.directory,
      output,
      descriptor: descriptorUnlessFile(output),
      place: hosts.join(' '),
      calledAt: this.#options.clock.now(),
    };
    const idle = called.descriptor === null ? this.#idle.take(called.place) : null;
    if (idle !== null) return idle.run(called);
    this.#called.add(called);
    return this.#beginLaunchers();
  }

  #beginLaunchers(): void {
    const { clock } = this.#options;
    this.#look?.cancel();
    while (this.#starting < MAX_STARTING) {
      const called = this.#called.takeForNew(clock.now(), (place) => this.#servedAt(place));
      if (called === null) break;
      this.#begin(called);
    }
    if (!this.#called.isEmpty) this.#look = clock.after(BETWEEN_LOOKS_MS, () => this.#beginLaunchers());
  }

  #servedAt(place: string): { readonly launchers: number; readonly soon: boolean } {
    const there = [...this.#all].filter((launcher) => launcher.place === place);
    return { launchers: there.length, soon: there.some((launcher) => launcher.isSoonFree) };
  }

  #begin(called: CalledAttempt): void {
    const { command, clock } = this.#options;
    const launcher = beginLauncher(called, {
      command,
      clock,
      started: () => void (this.#starting -= 1),
      free: (one) => this.#free(one),
      letGo: ({ attempt, output }, how) => {
        if (attempt.settle(how, output)) this.#later(LEASE_OVER_MS, () => attempt.lost());
      },
      gone: (one) => {
        this.#all.delete(one);
        this.#idle.remove(one);
      },
    });
    if (launcher === null) return;
    this.#starting += 1;
    this.#all.add(launcher);
    launcher.run(called);
  }

  #free(launcher: StandingLauncher): void {
    const called = this.#called.takeAt(launcher.place);
    if (called === null) this.#idle.add(launcher);
    else launcher.run(called);
  }

  /** Goes on with an attempt of a scheduler that is gone. */
  adopt(records: AttemptRecords, launcher: ProcessIdentity, handler: AttemptHandler): void {
    if (isAlive(launcher)) {
      this.#later(LOOK_MS, () => this.adopt(records, launcher, handler));
      return;
    }
    const end = records.end();
    if (end !== null) handler.ended(end);
    else this.#later(LEASE_OVER_MS, () => handler.ended(null));
  }

  /** Watches nothing any more; the launchers that have attempts run on. Resolves when the others are gone. */
  async close(): Promise<void> {
    for (const look of this.#looks) look.cancel();
    this.#looks.clear();
    const idle = this.#idle.close();
    for (const { descriptor } of this.#called.clear()) if (descriptor !== null) closeSync(descriptor);
    this.#look?.cancel();
    for (const launcher of this.#all) launcher.end();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const limit = this.#options.clock.after(GOODBYE_MS, resolve);
    await Promise.race([late, Promise.all(idle.map((launcher) => launcher.exited))]);
    limit.cancel();
  }

  #later(milliseconds: number, then: () => void): void {
    const look = this.#options.clock.after(milliseconds, () => {
      this.#looks.delete(look);
      then();
    });
    this.#looks.add(look);
  }
}

/** Null: its output cannot be opened any more, and the attempt fails for it. */
function beginLauncher(
  { attempt, output, descriptor, place }: CalledAttempt,
  options: Omit<StandingLauncherOptions, 'output' | 'place'>,
): StandingLauncher | null {
  let file = descriptor;
  try {
    file ??= openOutput(output);
    return new StandingLauncher({ ...options, place, output: file });
  } catch (error) {
    attempt.failedToBegin(messageOf(error), output);
    return null;
  } finally {
    if (file !== null) closeSync(file);
  }
}

/** Null: it is a file. Throws as openOutput does. */
function descriptorUnlessFile(output: string): number | null {
  const descriptor = openOutput(output);
  if (!fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  return null;
}

/** Throws a FailureError (system) where the disk does not take it. */
function writeOrder(records: AttemptRecords, order: AttemptOrder): void {
  try {
    records.writeOrder(order);
  } catch (error) {
    if (errorCode(error) === null || !(error instanceof Error)) throw error;
    throw diskFailure(`the order of an attempt in ${records.directory}`, error);
  }
}

/** Throws a FailureError (usage) for a path that nobody can write to; as node:fs does otherwise. */
function openOutput(path: string): number {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, 'a', 0o644);
  } catch (error) {
    const code = errorCode(error);
    if (code === null || !HOPELESS.has(code)) throw error;
    throw usageError(`its output cannot be written to ${path} (${code})`, 'correct output in the batch file');
  }
}
