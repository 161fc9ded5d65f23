/** --plan FILE: a CommPlan instead of the planner's. */
import type { Failure } from '../model/failure.ts';
import { FailureError } from '../model/failure-error.ts';
import { readGivenPlan } from './rendezvous.ts';
import type { RankMap } from '../model/types.ts';
import { messageOf } from '../../control/message-of.ts';
import type { GivenPlan } from '../../control/planner/input/input.ts';

/** Rejects with a FailureError (usage) if the file is unreadable. */
export async function givenPlan(path: string): Promise<GivenPlan> {
  try {
    return await readGivenPlan(path);
  } catch (error) {
    const message = messageOf(error);
    throw new FailureError({ type: 'usage', message, remedy: 'check the file given to --plan' }, { cause: error });
  }
}

/** A given plan is for so many ranks; null where it fits, or the number is not known yet. */
export function planMisfit(given: GivenPlan | null, map: RankMap | null): Failure | null {
  if (given === null || map === null || given.plan.peers.length === map.ranks.length) return null;
  const { source, plan } = given;
  const message = `${source}: is for ${plan.peers.length} ranks, this job has ${map.ranks.length}`;
  return { type: 'usage', message, remedy: `start ${plan.peers.length} ranks, or leave --plan out` };
}
