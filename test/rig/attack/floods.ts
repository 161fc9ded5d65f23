/** What a host says without end to fill the launcher's memory. */
import { encodeCalls } from '../../../control/messages/calls.ts';
import { encodeFrame, encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import type { AgentReport } from '../../../control/messages/link.ts';
import { encodeRouted } from '../../../control/messages/rendezvous-codec.ts';
import { ROUTED_WANTED } from '../../../control/messages/rendezvous.ts';
import { StagingMessage } from '../../../launcher/remote/staging/protocol.ts';
import { entry, merged, newKey } from '../rendezvous.ts';

export interface Flood {
  /** When it begins: in place of a hello, or once the ranks run. */
  readonly moment: 'connecting' | 'running';
  /** Of bytes that go out in one write. */
  piece(round: number): Uint8Array;
}

const PIECE_BYTES = 256 * 1024;

/** The same frame again and again. */
function same(moment: Flood['moment'], frame: Frame): Flood {
  const one = encodeFrame(frame);
  const all = Buffer.concat(Array.from({ length: Math.max(1, Math.floor(PIECE_BYTES / one.length)) }, () => one));
  return { moment, piece: () => all };
}

/** Frames of which each is another. */
function each(make: (number: number) => Frame, perPiece = 200): Flood {
  return {
    moment: 'running',
    piece: (round) =>
      Buffer.concat(Array.from({ length: perPiece }, (_, index) => encodeFrame(make(round * perPiece + index)))),
  };
}

function report(value: AgentReport): Frame {
  return makeFrame(FrameKind.failure, { payload: encodeJson(value) });
}

/** A key that no other number gives. */
function keyOf(number: number) {
  const id = Buffer.from(newKey().id, 'latin1');
  id.writeUInt32LE(number, 20);
  return { ...newKey(), id: id.toString('latin1') };
}

const line = Buffer.from('a line of a rank\n');
const long = 'x'.repeat(1000);
const where = {
  reading: 1,
  atMs: 0,
  monotonicUs: 0,
  stolenMs: null,
  health: null,
  arrivals: [],
  edges: [],
  communicators: [],
  processes: [],
  omitted: 0,
};

export const floods = {
  'staging: next': same('connecting', makeFrame(FrameKind.staging, { flags: StagingMessage.next })),
  'staging: unpacker': same('connecting', makeFrame(FrameKind.staging, { flags: StagingMessage.unpacker })),
  'staging: staged': same('connecting', makeFrame(FrameKind.staging, { flags: StagingMessage.staged })),
  'staging: cached': same('connecting', makeFrame(FrameKind.staging, { flags: StagingMessage.cached })),
  'staging: failed': same('connecting', makeFrame(FrameKind.staging, { flags: StagingMessage.failed, subject: 1 })),
  'staging: a word that there is not': same('connecting', makeFrame(FrameKind.staging, { flags: 99 })),
  'output in large frames': same('running', makeFrame(FrameKind.output, { payload: Buffer.alloc(60_000, line) })),
  'output in small frames': same('running', makeFrame(FrameKind.output, { payload: Buffer.from('\n') })),
  'empty output': same('running', makeFrame(FrameKind.output)),
  heartbeats: same('running', makeFrame(FrameKind.heartbeat)),
  suspensions: same('running', makeFrame(FrameKind.suspend, { flags: 1 })),
  notices: same('running', report({ type: 'notice', message: long })),
  'start notices': each((number) => report({ type: 'start-notice', message: `${long}${number}` })),
  'long notices': same('running', report({ type: 'notice', message: 'x'.repeat(1_000_000) })),
  hangs: same('running', report({ type: 'stalled' })),
  'positions of ranks': each((reading) => report({ type: 'rankPositions', where: { ...where, reading } })),
  'kinds of machines': each((number) =>
    makeFrame(FrameKind.machineKey, { payload: Buffer.from(number.toString(16).padStart(16, '0')) }),
  ),
  'long names of machines': same('running', makeFrame(FrameKind.machineKey, { payload: Buffer.alloc(1_000_000, 'k') })),
  'keys that wait': each((number) => merged(keyOf(number), 2, [entry(0)])),
  'communicators of itself alone': each((number) => merged(keyOf(number), 1, [entry(0)])),
  'messages that nobody fetches': each((number) =>
    makeFrame(FrameKind.routed, {
      payload: encodeRouted({ key: keyOf(number), from: 0, to: 1, tag: number, bytes: Buffer.alloc(1000) }),
    }),
  ),
  'wishes for messages that nobody sends': each((number) =>
    makeFrame(FrameKind.routed, {
      flags: ROUTED_WANTED,
      payload: encodeRouted({ key: keyOf(number), from: 1, to: 0, tag: number, bytes: new Uint8Array(0) }),
    }),
  ),
  calls: each((number) =>
    makeFrame(FrameKind.calls, {
      payload: encodeCalls(newKey(), [
        { rank: 0, pid: 7, count: number, hashes: [1], last: 'ncclAllReduce', waitingFor: 1 },
      ]),
    }),
  ),
  'credit for stdin': same('running', makeFrame(FrameKind.stdinCredit, { payload: new Uint8Array(8) })),
} satisfies Record<string, Flood>;

export function isFlood(name: string): name is keyof typeof floods {
  return Object.hasOwn(floods, name);
}
