/**
 * HostPlan and host segment, byte by byte. The native twins are native/plan/plan_format.h and native/plan/segment_format.h; a test reads
 * those headers and compares every field. Offsets are within a record, in bytes.
 */
import type { AlgorithmName, DeviceName, EdgeKind, Precondition, ProtocolName, TransportName } from './types.ts';

export const PLAN_MAGIC = 0x4c50_434e;
export const PLAN_VERSION = 4;

export const HEADER = {
  magic: 0,
  version: 4,
  headerBytes: 6,
  totalBytes: 8,
  ranks: 16,
  hosts: 20,
  hostIndex: 24,
  localRanks: 28,
  channels: 32,
  ringSteps: 36,
  ringStepBytes: 40,
  pairSteps: 44,
  pairStepBytes: 48,
  sameHostTransport: 52,
  otherHostTransport: 53,
  device: 54,
  copyChannels: 55,
  spinNanoseconds: 56,
  token: 64,
  segmentBytes: 80,
  abortOffset: 88,
  doorbellOffset: 96,
  barrierOffset: 104,
  pairOffset: 112,
  pairStride: 120,
  hostTable: 128,
  peerTable: 144,
  localTable: 160,
  memberTable: 176,
  channelTable: 192,
  shapeTable: 208,
  ringTable: 224,
  treeTable: 240,
  hostRingTable: 256,
  hostTreeTable: 272,
  edgeTable: 288,
  tuningTable: 304,
  variantTable: 320,
  stringTable: 336,
  nicTable: 352,
  rings: 368,
  trees: 372,
  hostRings: 376,
  hostTrees: 380,
  wideChannels: 384,
  narrowStepBytes: 388,
  lineSteps: 392,
  llStepBytes: 396,
  ll128StepBytes: 400,
  smsPerLaunch: 404,
  minCopyTimeoutMicroseconds: 408,
  maxCopyTimeoutMicroseconds: 412,
  capturedCopyTimeoutMicroseconds: 416,
  sockets: 420,
  socketThreads: 421,
  pairChannels: 422,
  networkOffset: 424,
  networkBytes: 428,
  gpuNicTable: 432,
  aggregatorTable: 448,
  aggregatorToken: 464,
} as const;
export const PLAN_HEADER_BYTES = 480;
export const SEGMENT_TOKEN_BYTES = 16;

/** A section in the header: u64 offset, u32 count, u32 stride. */
export const SECTION = { offset: 0, count: 8, stride: 12 } as const;
export const SECTION_BYTES = 16;

export const HOST_RECORD = {
  nameOffset: 0,
  nameBytes: 4,
  addressOffset: 8,
  addressBytes: 12,
  shape: 16,
  firstMember: 20,
  firstNic: 24,
  nicCount: 28,
} as const;
export const NIC_RECORD = {
  nameOffset: 0,
  nameBytes: 4,
  addressOffset: 8,
  addressBytes: 12,
  speedMbps: 16,
  port: 20,
  gpuDirect: 24,
  reserved: 25,
} as const;
export const GPU_NIC_RECORD = {
  card: 0,
  local: 8,
  receives: 12,
  sends: 13,
  reserved: 14,
  path: 16,
  reserved2: 20,
} as const;
export const AGGREGATOR_RECORD = { addressOffset: 0, addressBytes: 4, port: 8, reserved: 12 } as const;
export const CHANNEL_RECORD = { ring: 0, hostRing: 4, tree: 8, hostTree: 12, rail: 16 } as const;
export const SHAPE_RECORD = { ranks: 0, firstRing: 4, firstTree: 8, reserved: 12 } as const;
export const HOST_RING_RECORD = { host: 0, firstPosition: 4 } as const;
export const HOST_TREE_RECORD = { parent: 0, attachment: 4 } as const;
export const PEER_RECORD = { host: 0, localIndex: 4, listenPort: 8, pairNic: 12 } as const;
export const LOCAL_RECORD = { rank: 0, firstEdge: 4, edgeCount: 8, pairNic: 12 } as const;
export const EDGE_RECORD = {
  channel: 0,
  peer: 4,
  transport: 8,
  sends: 9,
  kind: 10,
  gpuDirect: 11,
  nic: 12,
  peerNic: 14,
  steps: 16,
  stepBytes: 20,
  segmentOffset: 24,
} as const;
export const TUNING_RECORD = {
  collective: 0,
  reserved: 1,
  firstVariant: 4,
  variantCount: 8,
  reserved2: 12,
  upToBytes: 16,
} as const;
export const VARIANT_RECORD = {
  algorithm: 0,
  protocol: 1,
  channels: 2,
  threads: 4,
  chunkBytes: 8,
  requires: 16,
  predictedMicroseconds: 20,
  predictedMicrosecondsPerMebibyte: 24,
  flags: 28,
} as const;
/** Bytes of one record of each section; entries of members, rings and trees are one u32, of strings one byte. */
export const STRIDE = {
  host: 32,
  nic: 32,
  gpuNic: 24,
  aggregator: 16,
  peer: 16,
  local: 16,
  member: 4,
  channel: 20,
  shape: 16,
  ring: 4,
  tree: 4,
  hostRing: 8,
  hostTree: 8,
  edge: 32,
  tuning: 24,
  variant: 32,
  string: 1,
} as const;

/** Numbers on the wire: the index in these lists. */
export const ALGORITHMS: readonly AlgorithmName[] = [
  'directOneShot',
  'directTwoShot',
  'ring',
  'tree',
  'collnet',
  'copyEngine',
  'rail',
  'collnetChain',
];
export const PROTOCOLS: readonly ProtocolName[] = ['simple', 'll', 'll128'];
export const DEVICES: readonly DeviceName[] = ['host', 'cuda'];
export const TRANSPORTS: readonly TransportName[] = ['shm', 'socket', 'p2p', 'ib', 'plugin'];
export const EDGE_KINDS: readonly EdgeKind[] = ['ring', 'tree', 'rail', 'pair', 'collnet'];
/** NIC of an edge or a pair that uses no network. */
export const NO_NIC = 0xffff;
export { COLLECTIVES } from '../collectives.ts';
/** The bit of each is 1 << its index. */
export const PRECONDITIONS: readonly Precondition[] = [
  'registeredBuffers',
  'notCaptured',
  'publishedAddresses',
  'wholeLines',
  'hostSlots',
  'networkReduction',
];

/** Bits of a variant's flags. */
export const AS_MESSAGES = 1;

/** Sizes inside the host segment. */
export const ABORT_BLOCK_BYTES = 512;
export const DOORBELL_BYTES = 64;
export const NODE_BARRIER_BYTES = 128;
export const CONNECTION_HEADER_BYTES = 256;
/** Of a communicator of GPUs, one per local rank. */
export const DEVICE_RECORD_BYTES = 384;
/** Size of a record for each pair of a GPU rank and a peer, itself included. */
export const COPY_WORDS_BYTES = 128;
export const AGREEMENT_RECORD_BYTES = 128;
export const AGREEMENTS = 8;
/** Header before the slots of one direction between two GPUs on one channel (native/plan/launch_format.h). */
export const REGION_HEADER_BYTES = 512;
/** In front of each slot of protocol Simple where a network connects hosts (native/plan/launch_format.h). */
export const NET_HEADER_BYTES = 128;
/** GPUs of one host that the kernels of one communicator address (native/plan/launch_format.h). */
export const MAX_GPUS = 16;
/** State of a GPU beside the regions: per connection and direction, per channel's ring, and per ring entry. */
export const GPU_STATE_BYTES = 32;
export const RING_POSITION_BYTES = 72;
export const RING_ENTRY_BYTES = 4;
/** Operations of one launch of a kernel at most: kMaxItems of native/plan/launch_format.h. */
export const LAUNCH_ITEMS = 34;
/** Of one of the counters that number what a replayed graph does, for the flight recorder. */
export const RECORDED_COUNT_BYTES = 4;
/** Of the lines of protocol LL, behind a connection's slots. */
export const LL_STEPS = 32;
export const LL_STEP_BYTES = 1024;
/** A Connection has room for the payload sizes of this many slots. */
export const MAX_STEPS = 16;
export const PAGE_BYTES = 4096;
export const CONNECTION_ALIGNMENT = PAGE_BYTES;
