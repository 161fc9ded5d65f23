/** The side of `ncclrun dump` and `status`: asks a job's launcher once, about its ranks. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { messageOf } from '../../control/message-of.ts';
import { usageError } from '../model/usage-error.ts';
import { isRunning, type RunningJob } from './find.ts';
import { placeOf } from './follow.ts';
import { FollowFrames, FollowKind, type AskRequest } from './follow-wire.ts';

/** JSON of a Recorder. Rejects with a FailureError (usage) for a job that gives none. */
export function dumpOf(job: RunningJob): Promise<Uint8Array> {
  return askJob(job, 'dump', FollowKind.recorder, 'does not say what its ranks have recorded');
}

/** The payload of the frame that answers. Rejects with a FailureError (usage) where none comes; `silence` is what is said then of the job. */
export async function askJob(
  job: RunningJob,
  asks: AskRequest['asks'],
  answer: FollowKind,
  silence: string,
): Promise<Uint8Array> {
  const { socket: name, key } = await placeOf(job);
  const socket = connect(`\0${name}`);
  const request: AskRequest = { key, asks };
  const frames = new FollowFrames();
  try {
    await once(socket, 'connect');
    socket.write(`${JSON.stringify(request)}\n`);
    for await (const bytes of socket)
      for (const { kind, payload } of frames.push(bytes)) if (kind === answer) return payload;
  } catch (error) {
    throw usageError(
      `job ${job.jobId} cannot be reached: ${messageOf(error)}`,
      isRunning(job) ? 'is its ncclrun in another container? run this command there' : 'it has ended: see its --report',
    );
  }
  throw usageError(`job ${job.jobId} ${silence}`, 'it has ended, or is of another version of ncclrun');
}
