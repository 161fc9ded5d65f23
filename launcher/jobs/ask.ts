/** The side of `ncclrun dump`, `status` and `stack`: asks a job's launcher for one thing. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { messageOf } from '../../control/message-of.ts';
import type { JobStatus } from '../model/status.ts';
import { usageError } from '../model/usage-error.ts';
import { isRunning, refuseStoppedJob, type RunningJob } from './find.ts';
import { placeOf } from './follow.ts';
import { FollowFrames, FollowKind, type AskRequest, type StackRequest } from './follow-wire.ts';

/** JSON of a Recorder. Rejects with a FailureError (usage) for a job that gives none. */
export function dumpOf(job: RunningJob): Promise<Uint8Array> {
  return answerOf(job, { asks: 'dump' }, FollowKind.recorder, 'what its ranks have recorded');
}

/** JSON of a StackReport; of all ranks for null. Rejects with a FailureError (usage) for a job that gives none. */
export function stacksOf(job: RunningJob, ranks: readonly number[] | null): Promise<Uint8Array> {
  return answerOf(job, { stacks: { ranks } }, FollowKind.stacks, 'the stacks of its ranks');
}

/** Rejects with a FailureError (usage) for a job that does not say how it fares. */
export async function statusOf(job: RunningJob): Promise<JobStatus> {
  const answer = await answerOf(job, { asks: 'status' }, FollowKind.status, 'how its ranks fare');
  const status: JobStatus = JSON.parse(Buffer.from(answer).toString('utf8'));
  return status;
}

/** A busy launcher answers within this time. */
const ANSWER_MS = 30_000;

async function answerOf(
  job: RunningJob,
  request: Omit<AskRequest, 'key'> | Omit<StackRequest, 'key'>,
  wanted: FollowKind,
  what: string,
): Promise<Uint8Array> {
  refuseStoppedJob(job);
  const { socket: name, key } = await placeOf(job);
  const socket = connect(`\0${name}`);
  socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
  const frames = new FollowFrames();
  try {
    await once(socket, 'connect');
    socket.write(`${JSON.stringify({ key, ...request })}\n`);
    for await (const bytes of socket)
      for (const { kind, payload } of frames.push(bytes)) if (kind === wanted) return payload;
  } catch (error) {
    refuseStoppedJob(job);
    throw usageError(
      `job ${job.jobId} cannot be reached: ${messageOf(error)}`,
      isRunning(job) ? 'is its ncclrun in another container? run this command there' : 'it has ended: see its --report',
    );
  }
  throw usageError(`job ${job.jobId} does not send ${what}`, 'it has ended, or is of another version of ncclrun');
}
