/** The side of `ncclrun status`: asks a job's launcher how it fares. */
import type { JobStatus } from '../model/status.ts';
import { askJob } from './dump.ts';
import type { RunningJob } from './find.ts';
import { FollowKind } from './follow-wire.ts';

/** Rejects with a FailureError (usage) for a job that does not say. */
export async function statusOf(job: RunningJob): Promise<JobStatus> {
  const answer = await askJob(job, 'status', FollowKind.status, 'does not say how its ranks fare');
  const status: JobStatus = JSON.parse(Buffer.from(answer).toString('utf8'));
  return status;
}
