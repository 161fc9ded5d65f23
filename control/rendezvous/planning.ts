/** From the joined ranks to the frames that carry their plan. */
import { decodePeerInfo } from '../messages/peer-info.ts';
import { encodePlan } from '../plan/encode.ts';
import type { EncodedPlan } from '../plan/encode.ts';
import { validatePlan } from '../plan/validate.ts';
import type { PlanInput, PlannedHost, PlannedPeer } from '../planner/input.ts';
import type { Planner } from '../planner/planner.ts';
import { randomBytes } from '../random-bytes.ts';
import type { Gathering } from './collector.ts';

export interface PlannedCommunicator {
  readonly encoded: EncodedPlan;
  /** By host index of the plan: host index of the job. */
  readonly hosts: readonly number[];
}

/** `hosts`: of the job, by host index. Throws UnplannableError, PlanError or ProtocolError with a sentence for the ranks. */
export function planJoined(
  gathering: Gathering,
  hosts: Readonly<Record<number, PlannedHost>>,
  planner: Planner,
  wholeJob: boolean,
): PlannedCommunicator {
  const used = [...gathering.hosts].sort((a, b) => a - b);
  const placeOf = new Map(used.map((host, place) => [host, place]));
  const peers: PlannedPeer[] = [];
  for (let rank = 0; rank < gathering.size; rank++) {
    const entry = gathering.entries.get(rank);
    if (entry === undefined) throw new RangeError(`rank ${rank} has not joined`);
    const { gpuDirect: _gpuDirect, ...info } = decodePeerInfo(entry.bytes, `facts of rank ${rank}`);
    peers.push({ ...info, host: placeOf.get(entry.host) ?? 0 });
  }
  const input: PlanInput = {
    hosts: used.map((host) => hosts[host] ?? { name: `host ${host}`, address: '', cores: 1 }),
    peers,
    token: randomBytes(16).toString('hex'),
  };
  const plan = planner.plan(input, wholeJob);
  validatePlan(plan);
  return { encoded: encodePlan(plan), hosts: used };
}
