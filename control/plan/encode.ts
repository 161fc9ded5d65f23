/**
 * CommPlan → HostPlan (native/plan/plan_format.h). What all hosts share (hosts, peers, rings, trees, tuning, strings) is encoded once and
 * lies right behind the header; a host's own records (its ranks and their ring edges) follow it.
 */
import { encodeGpuNics, encodeLocalTables } from './encode-local.ts';
import type { RingNeighbourTables } from './encode-local.ts';
import { encodeSharedTables, SHARED_SECTIONS, writeString } from './encode-shared.ts';
import type { SharedTables } from './encode-shared.ts';
import { DEVICES, HEADER, PLAN_HEADER_BYTES, PLAN_MAGIC, PLAN_VERSION, SECTION, STRIDE, TRANSPORTS } from './layout.ts';
import { layOutSegment } from './segment.ts';
import type { CommPlan } from './types.ts';
import { writeU64 } from './u64.ts';

/** What one host needs beside the shared part. */
interface HostPart {
  /** The header, then everything behind the shared part. */
  readonly bytes: Uint8Array;
  /** Size of the host segment. */
  readonly segmentBytes: number;
}

export interface EncodedPlan {
  /** Lies at HEADER_BYTES of every host's HostPlan. */
  readonly body: Uint8Array;
  /** `index` into the plan's hosts. */
  host(index: number): HostPart;
}

/** The plan must be valid (validate.ts). */
export function encodePlan(plan: CommPlan): EncodedPlan {
  const shared = encodeSharedTables(plan);
  const known = new Map<readonly number[], RingNeighbourTables>();
  const neighbours = plan.channels.map(({ ring }) => {
    const found = known.get(ring) ?? ringNeighbours(ring);
    known.set(ring, found);
    return found;
  });
  return { body: shared.bytes, host: (index) => encodeHost(plan, shared, membersOf(shared, index), neighbours, index) };
}

/** The whole HostPlan from its two parts. */
export function assembleHostPlan(body: Uint8Array, part: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(body.length + part.length);
  bytes.set(part.subarray(0, PLAN_HEADER_BYTES), 0);
  bytes.set(body, PLAN_HEADER_BYTES);
  bytes.set(part.subarray(PLAN_HEADER_BYTES), PLAN_HEADER_BYTES + body.length);
  return bytes;
}

/** One host's HostPlan in one piece. */
export function encodeHostPlan(plan: CommPlan, hostIndex: number): Uint8Array {
  const encoded = encodePlan(plan);
  return assembleHostPlan(encoded.body, encoded.host(hostIndex).bytes);
}

function membersOf({ channels: { members, firstMember } }: SharedTables, host: number): Uint32Array {
  return members.subarray(firstMember[host], firstMember[host + 1]);
}

function ringNeighbours(ring: readonly number[]): RingNeighbourTables {
  const next = new Uint32Array(ring.length);
  const previous = new Uint32Array(ring.length);
  let before = ring.at(-1) ?? 0;
  for (const rank of ring) {
    next[before] = rank;
    previous[rank] = before;
    before = rank;
  }
  return { next, previous };
}

function encodeHost(
  plan: CommPlan,
  shared: SharedTables,
  ranks: Uint32Array,
  neighbours: readonly RingNeighbourTables[],
  hostIndex: number,
): HostPart {
  const sharedRings =
    plan.device === 'host' && ranks.length > 1 && plan.transports.sameHost === 'shm'
      ? ranks.length * plan.channels.length
      : 0;
  const segment = layOutSegment(plan, ranks.length, sharedRings);
  const local = encodeLocalTables(plan, ranks, neighbours, shared.channels.localIndex, segment);
  const gpuNics = plan.hosts[hostIndex]?.gpuNics ?? [];
  const nicBytes = encodeGpuNics(gpuNics);
  const bytes = new Uint8Array(PLAN_HEADER_BYTES + local.bytes.length + nicBytes.length);
  bytes.set(local.bytes, PLAN_HEADER_BYTES);
  bytes.set(nicBytes, PLAN_HEADER_BYTES + local.bytes.length);
  const view = new DataView(bytes.buffer);
  writeHeader(view, plan, hostIndex, ranks.length, bytes.length + shared.bytes.length);
  writeString(view, HEADER.networkOffset, shared.network);
  view.setUint32(HEADER.rings, shared.channels.rings, true);
  view.setUint32(HEADER.trees, shared.channels.trees, true);
  view.setUint32(HEADER.hostRings, shared.channels.hostRings.length, true);
  view.setUint32(HEADER.hostTrees, shared.channels.hostTrees.length, true);
  for (const name of ['abortOffset', 'doorbellOffset', 'barrierOffset', 'pairOffset', 'pairStride'] as const) {
    writeU64(view, HEADER[name], segment[name]);
  }
  writeU64(view, HEADER.segmentBytes, segment.totalBytes);
  const tail = PLAN_HEADER_BYTES + shared.bytes.length;
  for (const [name, field] of SHARED_SECTIONS) {
    const { at, count } = shared.section(name);
    writeSection(view, field, at, count, STRIDE[name]);
  }
  writeSection(view, HEADER.localTable, tail, ranks.length, STRIDE.local);
  writeSection(view, HEADER.edgeTable, tail + ranks.length * STRIDE.local, local.edges, STRIDE.edge);
  writeSection(view, HEADER.gpuNicTable, tail + local.bytes.length, gpuNics.length, STRIDE.gpuNic);
  return { bytes, segmentBytes: segment.totalBytes };
}

function writeHeader(view: DataView, plan: CommPlan, hostIndex: number, localRanks: number, totalBytes: number): void {
  view.setUint32(HEADER.magic, PLAN_MAGIC, true);
  view.setUint16(HEADER.version, PLAN_VERSION, true);
  view.setUint16(HEADER.headerBytes, PLAN_HEADER_BYTES, true);
  writeU64(view, HEADER.totalBytes, totalBytes);
  view.setUint32(HEADER.ranks, plan.peers.length, true);
  view.setUint32(HEADER.hosts, plan.hosts.length, true);
  view.setUint32(HEADER.hostIndex, hostIndex, true);
  view.setUint32(HEADER.localRanks, localRanks, true);
  view.setUint32(HEADER.channels, plan.channels.length, true);
  view.setUint32(HEADER.ringSteps, plan.ringBuffer.steps, true);
  view.setUint32(HEADER.ringStepBytes, plan.ringBuffer.stepBytes, true);
  view.setUint32(HEADER.pairSteps, plan.pairBuffer.steps, true);
  view.setUint32(HEADER.pairStepBytes, plan.pairBuffer.stepBytes, true);
  view.setUint32(HEADER.wideChannels, plan.gpuBuffers?.wideChannels ?? 0, true);
  view.setUint32(HEADER.narrowStepBytes, plan.gpuBuffers?.narrowStepBytes ?? 0, true);
  view.setUint32(HEADER.lineSteps, plan.gpuBuffers?.lineSteps ?? 0, true);
  view.setUint32(HEADER.llStepBytes, plan.gpuBuffers?.llStepBytes ?? 0, true);
  view.setUint32(HEADER.ll128StepBytes, plan.gpuBuffers?.ll128StepBytes ?? 0, true);
  view.setUint16(HEADER.pairChannels, plan.gpuBuffers?.pairChannels ?? 0, true);
  view.setUint8(HEADER.sameHostTransport, TRANSPORTS.indexOf(plan.transports.sameHost));
  view.setUint8(HEADER.otherHostTransport, TRANSPORTS.indexOf(plan.transports.otherHost));
  view.setUint8(HEADER.device, DEVICES.indexOf(plan.device));
  view.setUint8(HEADER.copyChannels, plan.copyChannels);
  view.setUint32(HEADER.smsPerLaunch, plan.smsPerLaunch, true);
  view.setUint32(HEADER.minCopyTimeoutMicroseconds, plan.copyTimeouts.minMicroseconds, true);
  view.setUint32(HEADER.maxCopyTimeoutMicroseconds, plan.copyTimeouts.maxMicroseconds, true);
  view.setUint32(HEADER.capturedCopyTimeoutMicroseconds, plan.copyTimeouts.capturedMicroseconds, true);
  view.setUint8(HEADER.sockets, plan.network?.sockets ?? 1);
  view.setUint8(HEADER.socketThreads, plan.network?.socketThreads ?? 0);
  writeU64(view, HEADER.spinNanoseconds, plan.spinNanoseconds);
  const bytes = new Uint8Array(view.buffer, view.byteOffset);
  bytes.set(Buffer.from(plan.token, 'hex'), HEADER.token);
  bytes.set(Buffer.from(plan.aggregators?.token ?? '', 'hex'), HEADER.aggregatorToken);
}

function writeSection(view: DataView, at: number, offset: number, count: number, stride: number): void {
  writeU64(view, at + SECTION.offset, offset);
  view.setUint32(at + SECTION.count, count, true);
  view.setUint32(at + SECTION.stride, stride, true);
}
