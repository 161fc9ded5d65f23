/**
 * What decoders say of every message and plan that is cut short or has a wrong byte, compared with recorded sentences. After a deliberate change
 * `npx vitest run --project unit damaged -u` records the new ones.
 */
import { expect, test } from 'vitest';
import * as bootstrap from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { decodePassed, encodePassed } from '../../control/messages/child-agent.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { decodeCalls, encodeCalls } from '../../control/messages/calls.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { idBytes, type Key } from '../../control/messages/key.ts';
import { decodeMachineXml, encodeMachineXml } from '../../control/messages/machine.ts';
import * as payload from '../../control/messages/payload.ts';
import { decodePeerInfo } from '../../control/messages/peer-info.ts';
import * as rendezvous from '../../control/messages/rendezvous-codec.ts';
import { LeftHow, SHRINK_ROUND } from '../../control/messages/rendezvous.ts';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import { messageOf } from '../../control/message-of.ts';
import { samplePlan } from '../rig/plans.ts';
import { peerInfo } from '../rig/rendezvous.ts';

type Decode = (bytes: Uint8Array) => unknown;

const key: Key = { id: 'k'.repeat(128), epoch: 3, round: 5 };
const some = Buffer.from('abc');
const failed = { result: NcclResult.remoteError, sentence: 'lost' };
const call = { rank: 1, pid: 2, count: 3, hashes: [4, 5], last: 'x', waitingFor: null };
const start = () => new ByteWriter().bytes(idBytes(key.id));
const frame = makeFrame(FrameKind.exited, { subject: 1, payload: some });

const samples: readonly (readonly [name: string, decode: Decode, bytes: Uint8Array])[] = [
  ['hello', bootstrap.decodeEngineHello, new ByteWriter().u32(4).u32(77).i32(-1).string('job').string('1.0').finish()],
  ['join', bootstrap.decodeJoin, start().u32(3).u32(4).u32(1).bytes(peerInfo()).finish()],
  ['gather', bootstrap.decodeGather, start().u32(3).u32(5).u32(4).u32(1).block(some).finish()],
  [
    'split',
    bootstrap.decodeSplit,
    start().u32(3).u32(SHRINK_ROUND).u32(4).u32(1).i32(0).i32(2).bytes(peerInfo()).u32(1).u32(3).finish(),
  ],
  ['post', bootstrap.decodePost, start().u32(3).u32(0).u32(1).u32(9).block(some).finish()],
  ['fetch', bootstrap.decodeFetch, start().u32(3).u32(0).u32(1).u32(9).finish()],
  ['leave', bootstrap.decodeLeave, start().u32(3).u32(1).u32(2).string('why').u32(0xffff_ffff).finish()],
  [
    'merged',
    rendezvous.decodeMerged,
    rendezvous.encodeMerged({ key, size: 4, entries: [{ rank: 1, jobRank: -1, pid: 2, bytes: some }] }),
  ],
  [
    'completed',
    (bytes) => rendezvous.tableRows(rendezvous.decodeCompleted(bytes).table),
    rendezvous.encodeCompleted(key, [some, new Uint8Array(0)]),
  ],
  ['plan body', rendezvous.decodePlanBody, rendezvous.encodePlanBody(key, some)],
  [
    'host plan',
    rendezvous.decodeHostPlanPart,
    rendezvous.encodeHostPlanPart({ key, segmentBytes: 2 ** 33, part: some }),
  ],
  ['key failed', rendezvous.decodeKeyFailed, rendezvous.encodeKeyFailed({ key, ...failed })],
  ['routed', rendezvous.decodeRouted, rendezvous.encodeRouted({ key, from: 1, to: 2, tag: 3, bytes: some })],
  ['left', rendezvous.decodeLeft, rendezvous.encodeLeft({ key, rank: 1, how: LeftHow.died, reason: 'why' })],
  ['broken', rendezvous.decodeBroken, rendezvous.encodeBroken({ key, rank: 1, ...failed })],
  ['calls', decodeCalls, encodeCalls(key, [call])],
  [
    'children',
    decodePassed,
    encodePassed([
      { children: [1, 2], frame },
      { children: [], frame },
    ]),
  ],
  ['machine', decodeMachineXml, encodeMachineXml({ topology: '<a/>', graphs: null })],
  ['peer info', (bytes) => decodePeerInfo(bytes, 'peer info'), peerInfo({ device: 'cuda', gpuDirect: true })],
  ['spawned', payload.decodeSpawned, new ByteWriter().u32(7).u64(5_000_000n).finish()],
  ['spawn failed', payload.decodeSpawnFailed, payload.encodeSpawnFailed({ errno: 2, step: 6 })],
  ['exited', payload.decodeExited, new ByteWriter().i32(256).u64(5_000_000n).finish()],
  ['credit', payload.decodeCredit, payload.encodeCredit(2 ** 40)],
  ['signal', payload.decodeSignal, payload.encodeSignal(15)],
  ['host plan of processors', decodeHostPlan, encodeHostPlan(samplePlan(), 0)],
];

/** What becomes of the bytes: a sentence without its numbers, which are the damage. */
function outcome(decode: Decode, bytes: Uint8Array): string {
  try {
    decode(bytes);
    return 'is accepted';
  } catch (error) {
    return messageOf(error);
  }
}

/** Equal outcomes of neighbouring places once. */
function outcomes(of: (place: number) => string, places: number): string[] {
  const found: { text: string; from: number; to: number }[] = [];
  for (let place = 0; place < places; place++) {
    const text = of(place).replaceAll(/-?\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?)/gu, 'N');
    const last = found.at(-1);
    if (last?.text === text) last.to = place;
    else found.push({ text, from: place, to: place });
  }
  return found.map(({ text, from, to }) => `  ${from === to ? from : `${from} to ${to}`}: ${text}`);
}

test('every decoder accepts its message, and says the recorded sentences of damaged ones', async () => {
  const lines = samples.flatMap(([name, decode, bytes]) => {
    expect(outcome(decode, bytes), name).toBe('is accepted');
    const damaged = (place: number): Uint8Array => bytes.map((byte, at) => (at === place ? byte ^ 0xff : byte));
    const step = bytes.length > 1000 ? 5 : 1;
    const read = JSON.stringify(decode(bytes)).replaceAll(key.id, 'ID');
    return [
      `${name} = ${name.startsWith('host plan of') ? 'a plan' : read}`,
      `${name}, ${bytes.length} bytes, cut behind`,
      ...outcomes((place) => outcome(decode, bytes.subarray(0, place * step)), Math.floor(bytes.length / step)),
      `${name}, with another byte at`,
      ...outcomes((place) => outcome(decode, damaged(place * step)), Math.floor(bytes.length / step)),
      `${name} and a byte more: ${outcome(decode, Buffer.concat([bytes, Buffer.alloc(1)]))}`,
    ];
  });
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/damaged-bytes.txt');
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex').replace('6b'.repeat(128), 'ID ');

test('answers to engines have their layout', () => {
  const welcome = { hostIndex: 1, hostCount: 2, rankCount: 3, epoch: 4, jobId: 'j', hostName: 'h' };
  expect(hex(bootstrap.encodeWelcome(welcome))).toBe('01000000020000000300000004000000010000006a0100000068');
  expect(hex(bootstrap.encodePlanAnswer(1, key, 4, 2))).toBe('01000000ID 030000000400000002000000');
  expect(hex(bootstrap.encodeDelivery(some))).toBe('03000000616263');
  expect(hex(bootstrap.encodeRefused(NcclResult.invalidUsage, 'no'))).toBe('05000000020000006e6f');
  const gone = { to: 1, rank: 2, ...failed, sentence: 'x', waited: true };
  expect(hex(bootstrap.encodePeerGone(key, gone))).toBe('ID 03000000010000000200000006000000010000007801000000');
  expect(hex(bootstrap.encodeAborted(key, 7, NcclResult.remoteError, 'x'))).toBe(
    'ID 0300000007000000060000000100000078',
  );
});

const stampOf = (time: number): number => time % 2 ** 32;

test('the time of output is the last one with that stamp', () => {
  const now = 2 ** 40 + 1000;
  expect([0, 1, 5000, 2 ** 31 - 1].map((ago) => payload.outputTime(stampOf(now - ago), now))).toEqual(
    [0, 1, 5000, 2 ** 31 - 1].map((ago) => now - ago),
  );
  expect(payload.outputTime(stampOf(now + 1), now)).toBe(now + 1);
  expect(payload.outputTime(stampOf(now - 2 ** 31), now)).toBe(now + 2 ** 31);
});

test('a wait status is a status or a signal', () => {
  expect([0, 256, 3 * 256, 9, 0x86].map(payload.exitOf)).toEqual([
    { exitCode: 0, signalNumber: null },
    { exitCode: 1, signalNumber: null },
    { exitCode: 3, signalNumber: null },
    { exitCode: null, signalNumber: 9 },
    { exitCode: null, signalNumber: 6 },
  ]);
});
