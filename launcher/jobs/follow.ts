/** The side of `ncclrun logs` and `attach`: shows what the job's launcher sends. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../control/message-of.ts';
import { printableLine } from '../../control/printable.ts';
import { isTerminal } from '../model/terminal.ts';
import type { RankRange } from '../model/types.ts';
import { usageError } from '../model/usage-error.ts';
import { standardStreams } from '../report/standard-streams.ts';
import { isRunning, jobNow, refuseStoppedJob, type RunningJob } from './find.ts';
import { FollowFrames, FollowKind, type FollowRequest } from './follow-wire.ts';
import type { FollowPlace } from './note.ts';

const LOOK_MS = 20;
/** A job serves its output soon after it has begun. */
const PLACE_MS = 5000;
/** Of a job whose end was not seen. */
const UNSEEN = 125;
const COLOUR_VARIABLES = ['FORCE_COLOR', 'NO_COLOR', 'TERM'] as const;

interface FollowWish extends Pick<FollowRequest, 'follows' | 'kept'> {
  readonly ranks: readonly RankRange[] | null;
  /** Printed once output is on its way; empty: nothing is. */
  readonly greeting: string;
}

/** Resolves with the job's exit status once it has ended, with 0 if it is not followed. Rejects with a FailureError (usage) for one that cannot be. */
export async function follow(job: RunningJob, { greeting, ...wish }: FollowWish): Promise<number> {
  refuseStoppedJob(job);
  const { socket: name, key } = await placeOf(job);
  const streams = standardStreams();
  const request: FollowRequest = {
    ...wish,
    key,
    stdoutIsTerminal: isTerminal(1),
    stderrIsTerminal: isTerminal(2),
    columns: isTerminal(2) ? streams.columns() : null,
    environment: { ...Object.fromEntries(COLOUR_VARIABLES.flatMap((variable) => variableOf(variable))), ...chosen() },
  };
  const socket = connect(`\0${name}`);
  try {
    await once(socket, 'connect');
  } catch (error) {
    throw usageError(
      `job ${job.jobId} cannot be reached: ${messageOf(error)}`,
      isRunning(job) ? 'is its ncclrun in another container? run this command there' : ended,
    );
  }
  socket.write(`${JSON.stringify(request)}\n`);
  const status = await shown(socket, greeting);
  if (status !== null) return status;
  const id = printableLine(job.jobId);
  await streams.stderr.print(
    isRunning(job)
      ? `ncclrun: job ${id} runs, and sends no more output\n`
      : `ncclrun: job ${id} has ended, and its status is not known here\n`,
  );
  return UNSEEN;
}

/** ncclrun keeps nothing of a job that has ended. */
export const OF_ENDED_JOBS =
  'the output of a job that has ended is where it went, and in the files of its --output if it has some';
const ended = `it has ended: ${OF_ENDED_JOBS}`;

/** Null: the other side left without a word. */
async function shown(socket: Socket, greeting: string): Promise<number | null> {
  const streams = standardStreams();
  const frames = new FollowFrames();
  try {
    for await (const bytes of socket) {
      for (const { kind, payload } of frames.push(bytes)) {
        if (kind === FollowKind.stdout) await streams.stdout.write(payload);
        else if (kind === FollowKind.stderr) await streams.stderr.write(payload);
        else if (kind === FollowKind.begun) await streams.stderr.print(greeting);
        else return kind === FollowKind.ended ? (payload[0] ?? UNSEEN) : 0;
      }
    }
  } catch (error) {
    if (!isSocketError(error)) throw error;
  }
  return null;
}

/** Where the job's launcher answers. Rejects with a FailureError (usage) for one that has ended or is of another version. */
export async function placeOf(job: RunningJob): Promise<FollowPlace> {
  const until = performance.now() + PLACE_MS;
  for (let now: RunningJob | null = job; now !== null; now = jobNow(job)) {
    if (now.output !== undefined) return now.output;
    if (performance.now() > until)
      throw usageError(`job ${job.jobId} serves no output`, 'it is of another version of ncclrun, or was stopped');
    await delay(LOOK_MS);
  }
  throw usageError(`job ${job.jobId} has ended`, OF_ENDED_JOBS);
}

/** The reader's NCCLRUN_COLOR, which stands above the other variables. */
function chosen(): Record<string, string> {
  const { NCCLRUN_COLOR: choice } = process.env;
  return choice === 'always' ? { FORCE_COLOR: '1' } : choice === 'never' ? { FORCE_COLOR: '0' } : {};
}

function variableOf(name: string): (readonly [string, string])[] {
  const value = process.env[name];
  return value === undefined ? [] : [[name, value]];
}

function isSocketError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}
