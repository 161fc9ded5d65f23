/**
 * The files of an attempt, in a directory of its own. Whoever comes first makes `decision`, by link(2): the launcher that is to run the attempt
 * ("started", before it touches any host), or a scheduler that does not know whether one was started ("void"). So an attempt runs once or never,
 * whoever dies when.
 *
 *   order.json   what to run; the scheduler's
 *   decision     started or void
 *   report.json  the job's result, as --report has it
 *   end.json     how it ended; the launcher's last deed
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { createDurably, makeDirectory, readIfThere, writeDurably } from './durable-file.ts';
import { ownIdentity, processIdentity } from './process-identity.ts';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const attemptOrder = v.object({
  schemaVersion: v.literal(1),
  /** The batch's id, the task's name, the attempt's number. */
  batch: v.string(),
  task: v.string(),
  attempt: whole,
  /** Of the scheduler; grows each time that the batch is resumed. */
  generation: whole,
  workingDirectory: v.string(),
  /** Changes to the environment. */
  environment: v.record(v.string(), v.string()),
  /** Of ncclrun: options, program and arguments. */
  argv: v.array(v.string()),
});
export type AttemptOrder = v.InferOutput<typeof attemptOrder>;

const decision = v.variant('decided', [
  v.object({ decided: v.literal('started'), launcher: processIdentity }),
  v.object({ decided: v.literal('void') }),
]);
type Decision = v.InferOutput<typeof decision>;

/**
 * busy: other jobs hold GPUs that it was to have, and no rank was started; success; error: of the job itself; interruption: a host was lost, or a signal ended the launcher; refused: it can never start so; timed-out: its
 * time limit.
 */
const outcomes = ['success', 'error', 'interruption', 'refused', 'timed-out', 'busy'] as const;
export type Outcome = (typeof outcomes)[number];

const busySlot = v.object({ host: v.string(), slot: whole });
export type BusySlot = v.InferOutput<typeof busySlot>;

const attemptEnd = v.object({
  schemaVersion: v.literal(1),
  outcome: v.picklist(outcomes),
  exitCode: whole,
  /** As the result's: ok, or the type of the failure. */
  reason: v.string(),
  outOfMemory: v.boolean(),
  /** The first failure in a sentence; empty where there was none. */
  sentence: v.string(),
  /** Hosts that failed or were lost. */
  badHosts: v.array(v.object({ name: v.string(), lost: v.boolean() })),
  /** Slots whose GPUs other jobs hold. */
  busySlots: v.optional(v.array(busySlot), []),
  /** Milliseconds since 1970. */
  endedAt: whole,
});
export type AttemptEnd = v.InferOutput<typeof attemptEnd>;

/** `directory`: of all attempts. */
export function recordsIn(directory: string, task: number, attempt: number): AttemptRecords {
  return new AttemptRecords(join(directory, `${task}.${attempt}`));
}

export class AttemptRecords {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  get reportPath(): string {
    return this.#path('report.json');
  }

  /** Throws as node:fs does. */
  writeOrder(order: AttemptOrder): void {
    makeDirectory(this.directory);
    writeDurably(this.#path('order.json'), JSON.stringify(order));
  }

  /** Null: there is none. Throws for a damaged one. */
  order(): AttemptOrder | null {
    return this.#read('order.json', attemptOrder);
  }

  /** True if the attempt is this process's to run; false: it is void, or another launcher's. */
  claimStart(): boolean {
    return createDurably(this.#path('decision'), JSON.stringify({ decided: 'started', launcher: ownIdentity() }));
  }

  /** What is decided after this: void, unless a launcher was first. */
  voidUnlessStarted(): Decision {
    makeDirectory(this.directory); // the scheduler may have died before it did
    createDurably(this.#path('decision'), JSON.stringify({ decided: 'void' }));
    return this.decision() ?? { decided: 'void' };
  }

  /** Null: nobody has decided. */
  decision(): Decision | null {
    return this.#read('decision', decision);
  }

  writeEnd(end: AttemptEnd): void {
    writeDurably(this.#path('end.json'), JSON.stringify(end));
  }

  /** Null: it has not ended, or its launcher was lost. */
  end(): AttemptEnd | null {
    return this.#read('end.json', attemptEnd);
  }

  #path(name: string): string {
    return join(this.directory, name);
  }

  #read<T>(name: string, schema: v.GenericSchema<unknown, T>): T | null {
    const content = readIfThere(this.#path(name));
    return content === null ? null : v.parse(schema, JSON.parse(content));
  }
}
