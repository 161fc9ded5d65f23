/** Decodes HostPlan bytes for `--plan` with a binary file, inspection and tests; trusts nothing (PlanError). */
import type { NicPair } from '../messages/hang.ts';
import { DEVICES, HEADER, LOCAL_RECORD, SEGMENT_TOKEN_BYTES, STRIDE, TRANSPORTS } from './layout.ts';
import { decodeChannels } from './decode-channels.ts';
import { decodeEdges } from './decode-edges.ts';
import type { DecodedEdge } from './decode-edges.ts';
import { decodeAggregators, decodeHosts, decodeNetwork, decodePeers } from './decode-shared.ts';
import { decodeTuning } from './decode-tuning.ts';
import { named, openPlan } from './plan-reader.ts';
import type { PlanReader } from './plan-reader.ts';
import type { CommPlan, GpuBuffers } from './types.ts';
import { PlanError, validatePlan } from './validate.ts';

interface DecodedLocal {
  readonly rank: number;
  readonly edges: readonly DecodedEdge[];
}

/** Offsets and sizes in bytes, see segment_format.h. */
interface DecodedSegment {
  readonly segmentBytes: number;
  readonly abortOffset: number;
  readonly doorbellOffset: number;
  readonly barrierOffset: number;
  readonly pairOffset: number;
  readonly pairStride: number;
}

interface DecodedHostPlan {
  readonly plan: CommPlan;
  /** Of the host that this HostPlan is for. */
  readonly hostIndex: number;
  readonly segment: DecodedSegment;
  /** By local index. */
  readonly locals: readonly DecodedLocal[];
}

export function isHostPlan(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && Buffer.from(bytes.buffer, bytes.byteOffset, 4).toString('latin1') === 'NCPL';
}

export function decodeHostPlan(bytes: Uint8Array): DecodedHostPlan {
  const reader = openPlan(bytes);
  const plan = decodePlan(reader);
  validatePlan(plan);
  const hostIndex = reader.u32(HEADER.hostIndex);
  if (hostIndex >= plan.hosts.length)
    throw new PlanError(`hostIndex: ${hostIndex}, there are ${plan.hosts.length} hosts`);
  const segment = decodeSegment(reader);
  return { plan, hostIndex, segment, locals: decodeLocals(reader, plan, hostIndex, segment) };
}

/** Names of the NICs of the pair connection by which `rank` receives from `peer`; null without a network between them. */
export function receivingNics(bytes: Uint8Array, rank: number, peer: number): NicPair | null {
  const reader = openPlan(bytes);
  const [peers, hosts] = [decodePeers(reader, reader.u32(HEADER.ranks)), decodeHosts(reader, reader.u32(HEADER.hosts))];
  const [own, other] = [peers[rank], peers[peer]];
  if (own === undefined || other === undefined || own.host === other.host) return null;
  const nicOf = (host: number): string | undefined => hosts[host]?.nics[own.pairNic ?? -1]?.name;
  const [ownNic, peerNic] = [nicOf(own.host), nicOf(other.host)];
  return ownNic === undefined || peerNic === undefined ? null : { own: ownNic, peer: peerNic };
}

/** Only where the engine and its agent meet; the rest of the plan is not looked at. */
export function decodeSegmentOf(
  hostPlan: Uint8Array,
): DecodedSegment & { readonly localRanks: number; readonly ranks: number } {
  const reader = openPlan(hostPlan);
  const [localRanks, ranks] = [reader.u32(HEADER.localRanks), reader.u32(HEADER.ranks)];
  return { ...decodeSegment(reader), localRanks, ranks };
}

function decodePlan(reader: PlanReader): CommPlan {
  const peers = decodePeers(reader, reader.u32(HEADER.ranks));
  const hosts = decodeHosts(reader, reader.u32(HEADER.hosts));
  const device = named(DEVICES, reader.u8(HEADER.device), 'device');
  return {
    formatVersion: 1,
    device,
    peers,
    hosts,
    channels: decodeChannels(reader, peers.length, hosts.length),
    transports: {
      sameHost: named(TRANSPORTS, reader.u8(HEADER.sameHostTransport), 'sameHostTransport'),
      otherHost: named(TRANSPORTS, reader.u8(HEADER.otherHostTransport), 'otherHostTransport'),
    },
    network: decodeNetwork(reader),
    ringBuffer: { steps: reader.u32(HEADER.ringSteps), stepBytes: reader.u32(HEADER.ringStepBytes) },
    pairBuffer: { steps: reader.u32(HEADER.pairSteps), stepBytes: reader.u32(HEADER.pairStepBytes) },
    gpuBuffers: device === 'cuda' ? decodeGpuBuffers(reader) : null,
    tuning: decodeTuning(reader),
    copyChannels: reader.u8(HEADER.copyChannels),
    smsPerLaunch: reader.u32(HEADER.smsPerLaunch),
    copyTimeouts: {
      minMicroseconds: reader.u32(HEADER.minCopyTimeoutMicroseconds),
      maxMicroseconds: reader.u32(HEADER.maxCopyTimeoutMicroseconds),
      capturedMicroseconds: reader.u32(HEADER.capturedCopyTimeoutMicroseconds),
    },
    spinNanoseconds: reader.u64(HEADER.spinNanoseconds, 'spinNanoseconds'),
    token: Buffer.from(reader.bytes(HEADER.token, SEGMENT_TOKEN_BYTES)).toString('hex'),
    aggregators: decodeAggregators(reader),
  };
}

function decodeGpuBuffers(reader: PlanReader): GpuBuffers {
  return {
    wideChannels: reader.u32(HEADER.wideChannels),
    narrowStepBytes: reader.u32(HEADER.narrowStepBytes),
    lineSteps: reader.u32(HEADER.lineSteps),
    llStepBytes: reader.u32(HEADER.llStepBytes),
    ll128StepBytes: reader.u32(HEADER.ll128StepBytes),
    pairChannels: reader.u16(HEADER.pairChannels),
  };
}

function decodeSegment(reader: PlanReader): DecodedSegment {
  return {
    segmentBytes: reader.u64(HEADER.segmentBytes, 'segmentBytes'),
    abortOffset: reader.u64(HEADER.abortOffset, 'abortOffset'),
    doorbellOffset: reader.u64(HEADER.doorbellOffset, 'doorbellOffset'),
    barrierOffset: reader.u64(HEADER.barrierOffset, 'barrierOffset'),
    pairOffset: reader.u64(HEADER.pairOffset, 'pairOffset'),
    pairStride: reader.u64(HEADER.pairStride, 'pairStride'),
  };
}

function decodeLocals(reader: PlanReader, plan: CommPlan, host: number, segment: DecodedSegment): DecodedLocal[] {
  const expected = plan.peers.flatMap((peer, rank) => (peer.host === host ? [rank] : []));
  const table = reader.section(HEADER.localTable, STRIDE.local, 'localTable');
  const edges = decodeEdges(reader, plan, segment.segmentBytes);
  if (table.count !== expected.length || reader.u32(HEADER.localRanks) !== expected.length) {
    throw new PlanError(`localTable: ${table.count} ranks, ${expected.length} belong to ${plan.hosts[host]?.name}`);
  }
  let used = 0;
  return expected.map((rank, index) => {
    const at = table.at(index);
    const [first, count] = [reader.u32(at + LOCAL_RECORD.firstEdge), reader.u32(at + LOCAL_RECORD.edgeCount)];
    if (reader.u32(at + LOCAL_RECORD.rank) !== rank) throw new PlanError(`localTable[${index}]: expected rank ${rank}`);
    used += count;
    if (Math.max(first + count, used) > edges.length)
      throw new PlanError(`localTable[${index}]: edges beyond the ${edges.length} there are`);
    return { rank, edges: edges.slice(first, first + count) };
  });
}
