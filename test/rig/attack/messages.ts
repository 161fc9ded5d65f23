/** What agents say to the launcher, each as it may be: the material of attacks that come near to it. */
import { ByteWriter } from '../../../control/messages/bytes.ts';
import { silenceFrame } from '../../../control/link/lease.ts';
import { encodeCalls } from '../../../control/messages/calls.ts';
import { encodeFrame, encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind } from '../../../control/messages/frame.ts';
import type { Frame } from '../../../control/messages/frame.ts';
import { encodeMachineXml } from '../../../control/messages/machine.ts';
import { encodeCredit, encodeSpawnFailed } from '../../../control/messages/payload.ts';
import { encodeRouted } from '../../../control/messages/rendezvous-codec.ts';
import { LeftHow } from '../../../control/messages/rendezvous.ts';
import { entry, left, merged, newKey } from '../rendezvous.ts';

/** Of the rank that the hostile host does not have. */
const OTHERS_RANK = 1;

const key = newKey();
const report = { type: 'refusal', message: 'there is no room', remedy: null };

const frames: Readonly<Record<string, Frame>> = {
  spawned: about(FrameKind.spawned, new ByteWriter().u32(7).u64(1).finish()),
  exited: about(FrameKind.exited, new ByteWriter().i32(0).u64(1).finish()),
  spawnFailed: about(FrameKind.spawnFailed, encodeSpawnFailed({ errno: 2, step: 6 })),
  stdinCredit: about(FrameKind.stdinCredit, encodeCredit(100)),
  output: about(FrameKind.output, Buffer.from('a line\n')),
  merged: merged(key, 2, [entry(0)]),
  'merged of another attempt': merged(newKey(undefined, 7), 2, [entry(0)]),
  'merged of a rank of another host': merged(key, 2, [entry(OTHERS_RANK)]),
  'merged of a size beyond the job': merged(key, 0xffff_ffff, [entry(0)]),
  left: left(key, 0, LeftHow.aborted, 'it had to'),
  routed: makeFrame(FrameKind.routed, {
    payload: encodeRouted({ key, from: 0, to: OTHERS_RANK, tag: 0, bytes: new Uint8Array(8) }),
  }),
  calls: makeFrame(FrameKind.calls, {
    payload: encodeCalls(key, [{ rank: 0, pid: 7, count: 1, hashes: [1], last: 'ncclAllReduce', waitingFor: 1 }]),
  }),
  machineKey: makeFrame(FrameKind.machineKey, { payload: Buffer.from('0123456789abcdef') }),
  machine: makeFrame(FrameKind.machine, {
    payload: encodeMachineXml({ topology: '<system version="1"/>', graphs: null }),
  }),
  failure: makeFrame(FrameKind.failure, { payload: encodeJson(report) }),
  'failure, its own silence': silenceFrame(7000),
};

function about(kind: FrameKind, payload: Uint8Array): Frame {
  return makeFrame(kind, { subject: OTHERS_RANK, payload });
}

/** Name and bytes; those about a rank speak of one that another host has. */
export const agentMessages: readonly (readonly [string, Uint8Array])[] = Object.entries(frames).map(([name, frame]) => [
  name,
  encodeFrame(frame),
]);
