/**
 * node bench/rendezvous.ts [--json]: a communicator of all ranks of simulated jobs, 8 ranks a host, from the first contribution to the last
 * host's plan, at the launcher's hub in this process; then one all-gather of 16 bytes a rank. Printed: time, messages, memory, growth. First
 * on hosts of which nothing is known, with one channel; then on hosts with eight GPUs each, with all channels that a search finds there.
 */
import { parseArgs } from 'node:util';
import { makeFrame } from '../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../control/messages/frame.ts';
import type { Frame } from '../control/messages/frame.ts';
import { encodeLeft, encodeMerged } from '../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND, LeftHow } from '../control/messages/rendezvous.ts';
import { encodeMachineXml } from '../control/messages/machine.ts';
import { makeUniqueId } from '../control/rendezvous/unique-id.ts';
import { RendezvousHub } from '../launcher/job/rendezvous.ts';
import { eightGpus } from '../test/rig/eight-gpus.ts';
import { machineOf } from '../test/rig/plans.ts';
import { peerInfo } from '../test/rig/rendezvous.ts';

const RANKS_PER_HOST = 8;
const RANK_COUNTS = [1_000, 10_000, 100_000];
const REPETITIONS = 3;

interface Row {
  readonly ranks: number;
  readonly hosts: number;
  readonly channels: number;
  readonly joinMs: number;
  readonly gatherMs: number;
  /** Frames to and from the launcher for the join, and their bytes as sent (a frame for all hosts counts for each). */
  readonly messages: number;
  readonly megabytesSent: number;
  /** Resident memory of this process at the end of the run. */
  readonly residentMegabytes: number;
  /** Keys still remembered when all have left; 0. */
  readonly left: number;
}

const info = peerInfo();
const machine = machineOf(eightGpus());
const MAX_CHANNELS = 64;

/** Of a cluster of such hosts, after doubling. */
function channelsFound(): number {
  const all = Array.from({ length: RANKS_PER_HOST }, () => ({ device: 'host', busId: '0' }) as const);
  return 2 * (machine.shape(all, true)?.ring.channels.length ?? 1);
}

async function measure(ranks: number, onGpus: boolean): Promise<Row> {
  const hosts = ranks / RANKS_PER_HOST;
  const id = makeUniqueId('bench').toString('latin1');
  let messages = 0;
  let bytesSent = 0;
  const channels = onGpus ? Math.min(MAX_CHANNELS, channelsFound()) : 1;
  const { promise: known, resolve: goOn } = Promise.withResolvers<void>();
  const hub = new RendezvousHub({
    jobId: 'bench',
    epoch: 0,
    hosts: Array.from({ length: hosts }, (_, host) => ({
      name: `node${host}`,
      address: `10.${host >> 16}.${(host >> 8) & 255}.${host & 255}`,
      cores: RANKS_PER_HOST,
    })),
    rankHosts: Array.from({ length: ranks }, (_, rank) => Math.floor(rank / RANKS_PER_HOST)),
    plan: null,
    environment: onGpus ? { NCCL_MIN_NCHANNELS: String(channels) } : {},
    send: (host, frame) => {
      messages += 1;
      bytesSent += frame.payload.length;
      if (frame.kind === FrameKind.machineKnown && host === hosts - 1) goOn();
    },
    onEvent: () => undefined,
  });
  const contribute = (round: number, bytes: Uint8Array): Frame[] =>
    Array.from({ length: hosts }, (_, host) => {
      const entries = Array.from({ length: RANKS_PER_HOST }, (_entry, local) => {
        const rank = host * RANKS_PER_HOST + local;
        return { rank, jobRank: rank, pid: 1000 + local, bytes };
      });
      return makeFrame(FrameKind.merged, {
        payload: encodeMerged({ key: { id, epoch: 0, round }, size: ranks, entries }),
      });
    });
  const timed = (frames: readonly Frame[]): number => {
    const start = performance.now();
    frames.forEach((frame, host) => hub.receive(host, frame));
    return performance.now() - start;
  };
  const told = performance.now();
  if (onGpus) {
    const key = makeFrame(FrameKind.machineKey, { payload: Buffer.from(machine.key) });
    for (let host = 0; host < hosts; host++) hub.receive(host, key);
    hub.receive(0, makeFrame(FrameKind.machine, { payload: encodeMachineXml(machine.wire) }));
    await known;
  }
  const tellingMs = performance.now() - told;
  const joinMs = tellingMs + timed(contribute(JOIN_ROUND, info));
  const counted = { messages: messages + hosts, megabytesSent: bytesSent / 1e6 };
  const gatherMs = timed(contribute(1, new Uint8Array(16)));
  const residentMegabytes = process.memoryUsage.rss() / 1e6;
  const leave = { key: { id, epoch: 0, round: JOIN_ROUND }, rank: ALL_RANKS, how: LeftHow.finalized, reason: '' };
  const leaving = makeFrame(FrameKind.left, { payload: encodeLeft(leave) });
  for (let host = 0; host < hosts; host++) hub.receive(host, leaving);
  hub.close();
  return { ranks, hosts, channels, joinMs, gatherMs, ...counted, residentMegabytes, left: hub.size };
}

async function median(ranks: number, onGpus: boolean): Promise<Row> {
  const rows: Row[] = [];
  for (let round = 0; round < REPETITIONS; round++) rows.push(await measure(ranks, onGpus));
  rows.sort((a, b) => a.joinMs - b.joinMs);
  const middle = rows[Math.floor(REPETITIONS / 2)];
  if (middle === undefined) throw new RangeError('no repetition was measured');
  return middle;
}

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
await measure(RANKS_PER_HOST * 16, true); // warms the code up
const rows: Row[] = [];
for (const onGpus of [false, true]) for (const ranks of RANK_COUNTS) rows.push(await median(ranks, onGpus));
if (values.json) {
  process.stdout.write(`${JSON.stringify({ rows })}\n`);
} else {
  process.stdout.write(
    '     ranks   hosts  channels  join ms  per rank µs  gather ms  messages   MB sent  RSS MB  left\n',
  );
  for (const row of rows) {
    const numbers: readonly (readonly [number, number, number])[] = [
      [row.ranks, 10, 0],
      [row.hosts, 8, 0],
      [row.channels, 10, 0],
      [row.joinMs, 9, 1],
      [(row.joinMs * 1000) / row.ranks, 13, 2],
      [row.gatherMs, 11, 1],
      [row.messages, 10, 0],
      [row.megabytesSent, 10, 0],
      [row.residentMegabytes, 8, 0],
      [row.left, 6, 0],
    ];
    process.stdout.write(
      `${numbers.map(([value, width, digits]) => value.toFixed(digits).padStart(width)).join('')}\n`,
    );
  }
}
