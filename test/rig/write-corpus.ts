/** node test/rig/write-corpus.ts: writes what the native fuzzers begin with, native/test/fuzz/corpus, as our own encoders do. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { encodeAborted, encodeRefused, encodeWelcome } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, OUTPUT_STDERR, PMI_CLOSE, PMI_READ } from '../../control/messages/frame.ts';
import { encodeSpawnOrder } from '../../control/messages/spawn-order.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import { samplePlan } from './plans.ts';

const corpus = join(import.meta.dirname, '../../native/test/fuzz/corpus');

function write(target: string, name: string, bytes: Uint8Array): void {
  const path = join(corpus, target, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

const rank = {
  rank: 0,
  stdinPipe: true,
  interactive: false,
  mergeStderr: false,
  pmi: false,
  workingDirectory: '/tmp',
  argv: ['sh', '-c', 'true'],
  environment: { A: 'b' },
  cpus: [0, 5],
};
const order = {
  leaseMs: 5000,
  outputCredit: 1 << 20,
  runtimeDirectory: '/tmp/x',
  ranks: [rank, { ...rank, rank: 1, stdinPipe: false, cpus: [] }],
};
write('spawn_order', 'two-ranks', encodeSpawnOrder(order, { SHARED: 'value' }));
write('spawn_order', 'none', encodeSpawnOrder({ ...order, ranks: [] }, {}));

const frames = Buffer.concat([
  encodeFrame(makeFrame(FrameKind.heartbeat)),
  encodeFrame(makeFrame(FrameKind.output, { flags: OUTPUT_STDERR, subject: 3, payload: Buffer.from('a line\n') })),
  encodeFrame(makeFrame(FrameKind.gather, { request: 9, payload: Buffer.alloc(40, 1) })),
]);
write('guardian_frames', 'three', frames);
write('local_server_frames', 'three', frames);

/** What a rank's PMI connection sees in turn (native/test/fuzz/guardian_pmi.cc): who does what, a count, content. */
const RANK_WRITES = 0;
const RANK_WRITES_MUCH = 1;
const RANK_READS = 2;
const RANK_CLOSES = 3;
const GUARDIAN_SERVES = 4;
const AGENT_ANSWERS = 5;
function step(who: number, content = '', count = 0): Buffer {
  return Buffer.concat([Buffer.from([who, (content.length << 2) | count]), Buffer.from(content, 'latin1')]);
}
const asked = [step(RANK_WRITES, 'cmd=get_maxes\n'), step(GUARDIAN_SERVES)];
const answered = [step(AGENT_ANSWERS, 'cmd=maxes rc=0\n'), step(AGENT_ANSWERS, '', PMI_READ)];
write('guardian_pmi', 'answered', Buffer.concat([...asked, ...answered, step(RANK_READS), ...asked, ...answered]));
const abort = step(RANK_WRITES, 'cmd=abort exitcode=3\n');
write('guardian_pmi', 'aborted', Buffer.concat([...asked, abort, step(RANK_CLOSES), ...answered]));
const much = [Buffer.from([RANK_WRITES_MUCH, 40]), step(GUARDIAN_SERVES), step(GUARDIAN_SERVES)];
write('guardian_pmi', 'much', Buffer.concat([...much, ...answered, step(GUARDIAN_SERVES)]));
write('guardian_pmi', 'closed', Buffer.concat([...asked, step(AGENT_ANSWERS, 'cmd=x\n', PMI_CLOSE), ...asked]));

const plan = samplePlan();
for (const host of plan.hosts.keys()) write('host_plan', `host-${host}`, encodeHostPlan(plan, host));

const key = { id: '\x07'.repeat(128), epoch: 1, round: 0 };
write(
  'engine_messages',
  'welcome',
  encodeWelcome({ hostIndex: 1, hostCount: 2, rankCount: 4, epoch: 0, jobId: 'job', hostName: 'host' }),
);
write('engine_messages', 'refused', encodeRefused(NcclResult.invalidUsage, 'the same rank twice'));
write('engine_messages', 'aborted', encodeAborted(key, 2, NcclResult.remoteError, 'rank 2 died'));

/** A chunk of a message between engines (native/net/socket/wire.h). */
function chunk(sequence: number, tag: number, payload: string, offset: number, messageBytes: number): Buffer {
  const header = Buffer.alloc(32);
  header.write('NNCK', 0, 'latin1');
  header.writeUInt32LE(sequence, 4);
  header.writeInt32LE(tag, 8);
  header.writeUInt32LE(payload.length, 12);
  header.writeBigUInt64LE(BigInt(offset), 16);
  header.writeBigUInt64LE(BigInt(messageBytes), 24);
  return Buffer.concat([header, Buffer.from(payload, 'latin1')]);
}
write('net_chunks', 'whole', chunk(0, 0, 'a'.repeat(8), 0, 8));
write('net_chunks', 'split', Buffer.concat([chunk(0, 0, 'b'.repeat(8), 0, 20), chunk(0, 0, 'c'.repeat(12), 8, 20)]));
write(
  'net_chunks',
  'group',
  Buffer.concat([
    chunk(0, 0, '', 0, 0),
    chunk(1, 1, 'ddd', 0, 3),
    chunk(2, 2, 'e'.repeat(64), 0, 64),
    chunk(3, 2, 'f', 0, 1),
    chunk(4, 0, 'gg', 0, 2),
    chunk(5, 1, 'hhhh', 0, 4),
  ]),
);

/** As native/net/oob/message.h has it. */
function outOfBand(kind: number, from: number, { network = '', sentence = '' } = {}): Buffer {
  const message = Buffer.alloc(640);
  message.writeUInt32LE(kind, 0);
  message.writeUInt32LE(from, 4);
  message.write(network, 208, 'latin1');
  message.write(sentence, 272, 'latin1');
  return message;
}
const INTRODUCTION = 1;
const OFFER = 3;
const GOODBYE = 5;
const CALL = 8;
write('net_oob', 'offer', Buffer.concat([outOfBand(INTRODUCTION, 2, { network: 'Socket' }), outOfBand(OFFER, 2)]));
const unterminated = { network: 'n'.repeat(64), sentence: 'x'.repeat(368) };
write('net_oob', 'goodbye', Buffer.concat([outOfBand(INTRODUCTION, 0), outOfBand(GOODBYE, 0, unterminated)]));
write('net_oob', 'call', Buffer.concat([outOfBand(INTRODUCTION, 1), outOfBand(CALL, 1)]));
write('net_oob', 'stranger', outOfBand(OFFER, 3));
