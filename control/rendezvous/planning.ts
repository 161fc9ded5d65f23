/** Plans the communicator of the joined ranks and encodes the plan in frames. */
import { makeFrame } from '../messages/codec.ts';
import { FrameKind } from '../messages/frame.ts';
import type { Frame } from '../messages/frame.ts';
import type { Key } from '../messages/key.ts';
import { decodePeerInfo } from '../messages/peer-info.ts';
import { encodeHostPlanPart, encodePlanBody } from '../messages/rendezvous-codec.ts';
import type { DeviceName } from '../plan/types.ts';
import { encodePlan } from '../plan/encode.ts';
import type { EncodedPlan } from '../plan/encode.ts';
import { validatePlan } from '../plan/validate.ts';
import type { PlanInput, PlannedHost, PlannedPeer } from '../planner/input/input.ts';
import { aggregatorsFor } from '../planner/input/network-reduction.ts';
import type { JobAggregators } from '../planner/input/network-reduction.ts';
import type { Planner } from '../planner/planner.ts';
import { randomBytes } from '../random-bytes.ts';
import type { PendingGather } from './collector.ts';

interface PlannedCommunicator {
  readonly encoded: EncodedPlan;
  /** Host index in the job by host index in the plan. */
  readonly hosts: readonly number[];
}

/** `hostAt` returns a host of the job by index. Throws UnplannableError, PlanError or ProtocolError with a sentence for the ranks. */
export function planJoined(
  gather: PendingGather,
  hostAt: (host: number, device: DeviceName) => PlannedHost,
  planner: Planner,
  wholeJob: boolean,
  aggregators: JobAggregators | null = null,
): PlannedCommunicator {
  const used = [...gather.hosts].sort((a, b) => a - b);
  const planIndex = new Map(used.map((host, index) => [host, index]));
  const peers: PlannedPeer[] = [];
  for (let rank = 0; rank < gather.size; rank++) {
    const entry = gather.entries.get(rank);
    if (entry === undefined) throw new RangeError(`rank ${rank} has not joined`);
    const { gpuDirect: _gpuDirect, ...info } = decodePeerInfo(entry.bytes, `facts of rank ${rank}`);
    peers.push({ ...info, host: planIndex.get(entry.host) ?? 0 });
  }
  const input: PlanInput = {
    hosts: used.map((host) => hostAt(host, peers[0]?.device ?? 'host')),
    peers,
    token: randomBytes(16).toString('hex'),
    aggregators: aggregators === null ? null : aggregatorsFor(aggregators, planIndex),
  };
  const plan = planner.plan(input, wholeJob);
  validatePlan(plan);
  return { encoded: encodePlan(plan), hosts: used };
}

/** Sends each host of the communicator the shared part, then its own. `send` takes a host index of the job. */
export function deliverPlan(
  key: Key,
  { encoded, hosts }: PlannedCommunicator,
  send: (host: number, frame: Frame) => void,
): void {
  const body = makeFrame(FrameKind.planBody, { payload: encodePlanBody(key, encoded.body) });
  for (const host of hosts) send(host, body); // In one loop, so that hosts behind one agent get the shared part in one frame.
  hosts.forEach((host, index) => {
    const { bytes, segmentBytes } = encoded.host(index);
    send(host, makeFrame(FrameKind.hostPlan, { payload: encodeHostPlanPart({ key, segmentBytes, part: bytes }) }));
  });
}
