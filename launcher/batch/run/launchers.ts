/**
 * The launchers of attempts: each is a process in a session of its own, which outlives the scheduler. The way in which an attempt ended is told by
 * its files alone, as a launcher that was adopted is nobody's child whose status could be waited for.
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock, Countdown } from '../../../control/clock.ts';
import { endOfFailure } from '../attempt/ending.ts';
import { isAlive, type ProcessIdentity } from '../attempt/process-identity.ts';
import { usageError } from '../../model/usage-error.ts';
import { errorCode } from '../attempt/error-code.ts';
import { diskFailure } from '../store/disk-failure.ts';
import { type AttemptEnd, type AttemptOrder, AttemptRecords } from '../attempt/records.ts';

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

export interface AttemptHandler {
  /** Its launcher has decided that it starts; before `ended`. */
  started(launcher: ProcessIdentity): void;
  /** Nothing of it runs any more. null: its launcher was lost. */
  ended(end: AttemptEnd | null): void;
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

  constructor(options: LaunchersOptions) {
    this.#options = options;
  }

  recordsOf(task: number, attempt: number): AttemptRecords {
    return new AttemptRecords(join(this.#options.attempts, `${task}.${attempt}`));
  }

  /** Begins the launcher of an attempt. `output`: the file that gets all that it prints. Throws a FailureError (usage) where it can never be begun, else as node:fs does. */
  start(task: number, order: AttemptOrder, output: string, handler: AttemptHandler): void {
    const records = this.recordsOf(task, order.attempt);
    writeOrder(records, order);
    const file = openOutput(output);
    try {
      const child = spawn(this.#options.command, ['batch-attempt', records.directory], {
        detached: true,
        stdio: ['ignore', file, file, 'pipe'],
      });
      const attempt = new OwnAttempt(records, handler);
      child.stdio[3]?.once('data', () => attempt.begun()).on('error', () => {});
      child.once('error', (error) => attempt.failedToBegin(error.message, output));
      child.once('exit', (code) => this.#settle(attempt, code, output));
    } finally {
      closeSync(file);
    }
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

  /** Watches nothing any more; the launchers run on. */
  close(): void {
    for (const look of this.#looks) look.cancel();
    this.#looks.clear();
  }

  /** Our child has exited. */
  #settle(attempt: OwnAttempt, code: number | null, output: string): void {
    if (attempt.isOver()) return;
    if (!attempt.begun()) attempt.failedToBegin(`exit status ${code ?? 'unknown'}`, output);
    else this.#later(LEASE_OVER_MS, () => attempt.lost());
  }

  #later(milliseconds: number, then: () => void): void {
    const look = this.#options.clock.after(milliseconds, () => {
      this.#looks.delete(look);
      then();
    });
    this.#looks.add(look);
  }
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

/** Of a launcher that is our child. */
class OwnAttempt {
  readonly #records: AttemptRecords;
  readonly #handler: AttemptHandler;
  #hasBegun = false;

  constructor(records: AttemptRecords, handler: AttemptHandler) {
    this.#records = records;
    this.#handler = handler;
  }

  /** Passes on that it has, once. False: it has not decided to. */
  begun(): boolean {
    if (this.#hasBegun) return true;
    const decision = this.#records.decision();
    if (decision?.decided !== 'started') return false;
    this.#hasBegun = true;
    this.#handler.started(decision.launcher);
    return true;
  }

  /** Passes on how it ended if its launcher has said so. */
  isOver(): boolean {
    const end = this.#records.end();
    if (end === null) return false;
    this.begun();
    this.#handler.ended(end);
    return true;
  }

  lost(): void {
    this.#handler.ended(null);
  }

  /** Its launcher did not come so far as to decide anything. */
  failedToBegin(why: string, output: string): void {
    this.#records.voidUnlessStarted();
    const message = `its launcher did not start (${why}; what it printed is in ${output})`;
    this.#handler.ended(endOfFailure({ type: 'system', message, remedy: null }, Date.now()));
  }
}
