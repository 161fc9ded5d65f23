/** A report of --report, or what `ncclrun dump` wrote: the recorder in it, checked. */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { messageOf } from '../../control/message-of.ts';
import { recordedProcess } from '../../control/link/recorder.ts';
import { decodeColumns } from '../../control/messages/recorder-columns.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { RecordedProcess, RecorderEntry } from '../../control/messages/recorder.ts';
import type { HostClock, RecordedGroup, RecordedHost } from '../model/recorder.ts';
import type { Failure } from '../model/failure.ts';
import { failureText } from '../report/failure-text.ts';
import { usageError } from '../model/usage-error.ts';

/** One process with its operations. */
export interface ReplayedRank extends Omit<RecordedProcess, 'entries' | 'replays'> {
  readonly host: string;
  readonly clock: HostClock | null;
  readonly entries: readonly RecorderEntry[];
  /** Of replayed graphs. */
  readonly replays: readonly ReplayedRing[];
}

/** Operations of one ring, the oldest first. */
export interface ReplayedRing {
  /** Sequence of the oldest that the ring still held. */
  readonly oldest: number;
  readonly entries: readonly RecorderEntry[];
}

export interface Replay {
  readonly jobId: string | null;
  readonly takenAt: number;
  /** Of the job, as the terminal had them; those that this version does not know are left out. */
  readonly failures: readonly Failure[];
  readonly communicators: readonly RecordedGroup[];
  readonly ranks: readonly ReplayedRank[];
  /** Hosts whose agent did not answer. */
  readonly silent: readonly string[];
  readonly omitted: number;
}

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const name = v.pipe(v.string(), v.maxLength(1000));

const group: v.GenericSchema<RecordedGroup> = v.object({
  id: v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/)),
  epoch: whole,
  name: v.nullable(v.pipe(v.string(), v.maxLength(64))),
  size: whole,
  members: v.pipe(v.string(), v.regex(/^[0-9,-]*$/)),
});

const host: v.GenericSchema<RecordedHost> = v.object({
  host: name,
  clock: v.nullable(v.object({ offsetNs: v.pipe(v.number(), v.integer()), errorNs: whole })),
});

const schema = v.object({
  schemaVersion: v.literal(1),
  jobId: v.optional(name),
  failures: v.optional(v.array(v.unknown())),
  recorder: v.object({
    schemaVersion: v.literal(1),
    takenAt: whole,
    hosts: v.array(host),
    communicators: v.array(group),
    ranks: v.array(v.intersect([recordedProcess, v.object({ host: name })])),
    omitted: whole,
  }),
});

/** A failure that this version can put into words: a file may be another version's, or damaged. */
function isShown(failure: unknown): failure is Failure {
  if (!hasType(failure)) return false;
  try {
    return !JSON.stringify(failureText(failure)).includes('undefined');
  } catch {
    return false;
  }
}

function hasType(failure: unknown): failure is Failure {
  return typeof failure === 'object' && failure !== null && 'type' in failure && typeof failure.type === 'string';
}

/** Throws a FailureError (usage) for a file that cannot be read or has no recorder. */
export function readReplay(path: string): Replay {
  try {
    return parseReplay(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof SyntaxError || (error instanceof Error && 'code' in error))
      throw usageError(`${path} cannot be read: ${messageOf(error)}`, 'name a file of --report or of ncclrun dump');
    throw error;
  }
}

/** @throws ProtocolError */
function parseReplay(json: unknown): Replay {
  const read = v.safeParse(schema, json, { abortEarly: true });
  if (!read.success) {
    const [issue] = read.issues;
    const field = v.getDotPath(issue) ?? 'the file';
    throw new ProtocolError(
      field === 'recorder'
        ? 'it has no recorded operations: nothing went wrong in that job'
        : `${field}: ${issue.message}`,
    );
  }
  const { jobId = null, failures = [] } = read.output;
  const { takenAt, hosts, communicators, ranks, omitted } = read.output.recorder;
  const clocks = new Map(hosts.map(({ host: at, clock }) => [at, clock]));
  return {
    jobId,
    takenAt,
    failures: failures.filter(isShown),
    communicators,
    ranks: ranks.map(({ replays = [], ...one }) => ({
      ...one,
      clock: clocks.get(one.host) ?? null,
      entries: decodeColumns(one.entries),
      replays: replays.map(({ oldest, entries }) => ({ oldest, entries: decodeColumns(entries) })),
    })),
    silent: hosts.filter(({ clock }) => clock === null).map(({ host: at }) => at),
    omitted,
  };
}
