/** The side of `ncclrun dump`: asks a job's launcher what its ranks have recorded. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { messageOf } from '../../control/message-of.ts';
import { usageError } from '../model/usage-error.ts';
import { isRunning, type RunningJob } from './find.ts';
import { placeOf } from './follow.ts';
import { FollowFrames, FollowKind, type DumpRequest } from './follow-wire.ts';

/** JSON of a Recorder. Rejects with a FailureError (usage) for a job that gives none. */
export async function dumpOf(job: RunningJob): Promise<Uint8Array> {
  const { socket: name, key } = await placeOf(job);
  const socket = connect(`\0${name}`);
  const request: DumpRequest = { key, dump: true };
  const frames = new FollowFrames();
  try {
    await once(socket, 'connect');
    socket.write(`${JSON.stringify(request)}\n`);
    for await (const bytes of socket)
      for (const { kind, payload } of frames.push(bytes)) if (kind === FollowKind.recorder) return payload;
  } catch (error) {
    throw usageError(
      `job ${job.jobId} cannot be reached: ${messageOf(error)}`,
      isRunning(job) ? 'is its ncclrun in another container? run this command there' : 'it has ended: see its --report',
    );
  }
  throw usageError(
    `job ${job.jobId} does not say what its ranks have recorded`,
    'it has ended, or is of another version of ncclrun',
  );
}
