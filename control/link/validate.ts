/** Validation of the link's JSON payloads by the receiver. */
import * as v from 'valibot';
import { MAX_AGGREGATORS, type AggregateOrder } from '../messages/aggregator.ts';
import type { ChildEnd, ChildOrder, ChildProblem } from '../messages/child-agent.ts';
import { MAX_PAYLOAD_BYTES } from '../messages/frame.ts';
import type { AgentHello, AgentOrder, AgentReport, AgentStart } from '../messages/link.ts';
import type { ReachQuestion } from '../messages/reach.ts';
import { ProtocolError } from '../messages/protocol-error.ts';
import type { Invitation } from './secret.ts';
import { MAX_HEALTH_GPUS, MAX_HEALTH_NICS } from '../messages/host-health.ts';
import {
  MAX_ARRIVALS,
  MAX_ARRIVING_RANKS,
  MAX_EDGES,
  MAX_INSPECTED,
  MAX_RECENT_CALLS,
  PROCESS_STATES,
} from '../messages/hang.ts';
import type { RankPositionsQuery } from '../messages/hang.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const environment = v.record(v.string(), v.string());
const addresses = v.pipe(v.array(v.pipe(v.string(), v.maxLength(100))), v.maxLength(1000));
const port = v.pipe(count, v.maxValue(65_535));
/** Text for people, bounded because launchers keep some of it. */
const sentence = v.pipe(v.string(), v.maxLength(10_000));
const name = v.pipe(v.string(), v.maxLength(1000));
/** Maximum size of an agent's JSON payload. */
const MAX_AGENT_JSON_BYTES = 1024 * 1024;

const program = v.object({
  argv: v.pipe(v.array(v.string()), v.minLength(1)),
  workingDirectory: v.string(),
  workingDirectoryGiven: v.boolean(),
  environment,
});

const rank = v.object({
  rank: count,
  program: count,
  visibleGpus: v.nullable(v.array(count)),
  gpu: v.nullable(count),
  stdinPipe: v.boolean(),
  interactive: v.boolean(),
  mergeStderr: v.boolean(),
  cpus: v.array(count),
});

const placement = v.object({
  hostIndex: count,
  hostCount: count,
  rankCount: count,
  programs: v.array(program),
  pmi: v.exactOptional(v.pipe(v.string(), v.maxLength(1024))),
  ranks: v.array(rank),
});

const jobId = v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/));

const order = v.object({
  schemaVersion: v.literal(1),
  version: v.string(),
  jobId,
  epoch: count,
  maxRestarts: count,
  stays: v.boolean(),
  hostName: v.string(),
  placement: v.nullable(placement),
  uniqueId: v.string(),
  leaseMs: v.pipe(count, v.minValue(1)),
  heartbeatMs: v.pipe(count, v.minValue(1)),
  outputCredit: count,
  plansLocally: v.boolean(),
  installation: v.string(),
  interfaces: v.nullable(v.string()),
  addressFamily: v.nullable(v.string()),
  verbs: v.boolean(),
  topology: v.boolean(),
  hangAfterMs: count,
  preload: v.boolean(),
  portRange: v.nullable(v.object({ first: port, last: port })),
  busyGpus: v.picklist(['refuse', 'report', 'ignore']),
  outerJob: v.nullable(jobId),
});

const localRanks = v.object({ before: count, all: count });
const start = v.object({ placement: v.nullable(placement), environment, localRanks: v.exactOptional(localRanks) });

const topology = v.object({
  cores: v.pipe(v.array(v.object({ cpus: v.pipe(v.array(count), v.minLength(1)), numa: count })), v.minLength(1)),
  gpus: v.array(v.object({ cpus: v.array(count), numa: v.nullable(count) })),
});

const nic = v.object({
  name,
  address: v.pipe(v.string(), v.maxLength(100)),
  prefixLength: count,
  speedMbps: count,
  pciPath: v.nullable(v.pipe(v.string(), v.maxLength(1000))),
  isVirtual: v.boolean(),
  isNamed: v.boolean(),
});

const verbsPort = v.object({
  card: name,
  port: v.pipe(count, v.maxValue(255)),
  linkLayer: v.picklist(['InfiniBand', 'Ethernet']),
  speedMbps: count,
  mtu: count,
  pciPath: v.nullable(name),
  firmware: name,
  gids: v.pipe(
    v.array(v.object({ index: count, gid: name, version: v.nullable(v.picklist([1, 2])) })),
    v.maxLength(64),
  ),
});

const verbs = v.object({ ports: v.pipe(v.array(verbsPort), v.maxLength(256)), problem: v.nullable(sentence) });
const hardwareName = v.nullable(v.pipe(v.string(), v.maxLength(200)));

const hello = v.object({
  schemaVersion: v.literal(1),
  version: name,
  jobId: name,
  hostName: name,
  bootId: name,
  clockId: v.nullable(name),
  pid: count,
  cores: count,
  gpus: count,
  topology: v.nullable(topology),
  nodeVersion: name,
  addresses,
  nics: v.pipe(v.array(nic), v.maxLength(1000)),
  verbs: v.nullable(verbs),
  launcherAddress: v.nullable(name),
  preflight: v.record(v.pipe(v.string(), v.maxLength(40)), v.pipe(v.string(), v.maxLength(1000))),
  hardware: v.object({ processor: hardwareName, gpu: hardwareName, driver: hardwareName }),
  time: count,
  freePort: count,
});

const communicatorName = v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/));

const gpu = v.object({ index: count, address: v.nullable(v.pipe(v.string(), v.maxLength(40))) });

const nicName = v.pipe(v.string(), v.maxLength(64));

const jobRank = v.pipe(v.number(), v.integer(), v.minValue(-1));
const word = v.pipe(v.string(), v.maxLength(40));

const callArguments = {
  collective: word,
  count: v.pipe(v.number(), v.minValue(0)),
  type: v.nullable(word),
  operator: v.nullable(word),
  root: v.nullable(count),
};

const callHistory = v.object({
  count,
  hashes: v.pipe(v.array(v.pipe(count, v.maxValue(0xffff))), v.maxLength(64)),
  last: v.pipe(v.string(), v.maxLength(400)),
  call: v.nullable(v.object(callArguments)),
  recent: v.pipe(v.array(v.object({ number: count, ...callArguments })), v.maxLength(MAX_RECENT_CALLS)),
});

const communicatorPositions = v.object({
  communicator: communicatorName,
  epoch: count,
  size: count,
  ranks: v.array(
    v.object({
      jobRank,
      rank: count,
      operation: count,
      inside: v.boolean(),
      byKernel: v.boolean(),
      collective: word,
      bytes: count,
      waitedMs: count,
      hangs: v.boolean(),
      progressUs: count,
      waitsFor: v.nullable(v.object({ rank: count, nics: v.nullable(v.object({ own: nicName, peer: nicName })) })),
      calls: v.nullable(callHistory),
    }),
  ),
});

const rankArrivals = v.object({
  communicator: communicatorName,
  epoch: count,
  size: count,
  jobRank,
  rank: count,
  numbers: v.pipe(v.array(count), v.maxLength(MAX_ARRIVALS)),
  startUs: count,
  afterUs: v.pipe(v.array(v.pipe(v.number(), v.integer())), v.maxLength(MAX_ARRIVALS)),
  outsideUs: v.pipe(v.array(count), v.maxLength(MAX_ARRIVALS)),
});

const reading = v.nullable(count);
const health = v.object({
  nics: v.pipe(
    v.array(
      v.object({
        nic: nicName,
        counters: v.pipe(v.record(word, count), v.maxEntries(40)),
      }),
    ),
    v.maxLength(MAX_HEALTH_NICS),
  ),
  gpus: v.pipe(
    v.array(
      v.object({
        address: word,
        clock: reading,
        maxClock: reading,
        throttleReasons: reading,
        corrected: reading,
        uncorrected: reading,
        pcieWidth: reading,
        maxPcieWidth: reading,
      }),
    ),
    v.maxLength(MAX_HEALTH_GPUS),
  ),
});

const rankEdge = v.object({
  communicator: communicatorName,
  epoch: count,
  jobRank,
  rank: count,
  peer: count,
  channel: count,
  sends: v.boolean(),
  nic: nicName,
  handed: count,
  carried: count,
  bytes: count,
  busyUs: count,
  idleUs: v.nullable(count),
  wire: v.nullable(v.object({ bytes: count, busyUs: count, retransmits: count })),
});

const where = v.object({
  reading: count,
  atMs: count,
  monotonicUs: count,
  stolenMs: v.nullable(count),
  communicators: v.array(communicatorPositions),
  processes: v.array(
    v.object({
      jobRank,
      pid: count,
      gpu: v.nullable(gpu),
      state: v.picklist(PROCESS_STATES),
      cpuMs: count,
      throttled: v.nullable(count),
      sleep: v.nullable(
        v.object({
          call: v.pipe(v.string(), v.maxLength(100)),
          file: v.nullable(v.pipe(v.string(), v.maxLength(300))),
          channel: v.nullable(v.pipe(v.string(), v.maxLength(100))),
        }),
      ),
    }),
  ),
  health: v.nullable(health),
  arrivals: v.pipe(v.array(rankArrivals), v.maxLength(MAX_ARRIVING_RANKS)),
  edges: v.pipe(v.array(rankEdge), v.maxLength(MAX_EDGES)),
  omitted: count,
});

const leftBehind = v.object({ communicator: communicatorName, epoch: count, rank: count, jobRank, sentence });

const positionsQuestion = v.object({
  reading: count,
  inspect: v.pipe(v.array(jobRank), v.maxLength(MAX_INSPECTED)),
  arrivals: v.boolean(),
  edges: v.boolean(),
});

const reachQuestion = v.variant('type', [
  v.object({ type: v.literal('listen') }),
  v.object({
    type: v.literal('probe'),
    targets: v.pipe(
      v.array(v.object({ host: v.string(), addresses, sources: v.nullable(addresses), port, thorough: v.boolean() })),
      v.maxLength(10),
    ),
  }),
]);

const aggregateOrder = v.object({
  count: v.pipe(count, v.minValue(1), v.maxValue(MAX_AGGREGATORS)),
  address: v.pipe(v.string(), v.maxLength(64)),
  token: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
});

const gpuMemory = v.object({
  gpu: count,
  total: count,
  free: count,
  holders: v.array(
    v.object({
      pid: count,
      program: v.nullable(v.pipe(v.string(), v.maxLength(100))),
      user: v.nullable(v.pipe(v.string(), v.maxLength(100))),
      used: v.nullable(count),
    }),
  ),
});

const busyGpu = v.object({
  index: v.nullable(count),
  slot: v.nullable(count),
  uuid: v.nullable(v.pipe(v.string(), v.maxLength(100))),
  job: v.nullable(v.pipe(v.string(), v.maxLength(100))),
  pid: v.nullable(count),
  user: v.nullable(v.pipe(v.string(), v.maxLength(100))),
});

const report = v.variant('type', [
  v.object({ type: v.literal('listening'), port }),
  v.object({ type: v.literal('reached'), found: v.pipe(v.array(addresses), v.maxLength(10)) }),
  v.object({
    type: v.literal('aggregating'),
    ports: v.pipe(v.array(port), v.maxLength(MAX_AGGREGATORS)),
    problem: v.nullable(sentence),
  }),
  v.object({ type: v.literal('refusal'), message: sentence, remedy: v.nullable(sentence) }),
  v.object({ type: v.literal('silent'), silentMs: count }),
  v.object({ type: v.literal('launcher-silent'), silentMs: count }),
  v.object({ type: v.literal('guardian-died'), message: sentence }),
  v.object({ type: v.literal('out-of-memory'), rank: count }),
  v.object({
    type: v.literal('mpi-abort'),
    rank: count,
    exitCode: v.pipe(count, v.minValue(1), v.maxValue(255)),
    time: count,
  }),
  v.object({ type: v.literal('rank-gpu'), rank: count, gpu }),
  v.object({ type: v.literal('gpu-memory'), gpus: v.array(gpuMemory) }),
  v.object({ type: v.literal('gpus-busy'), gpus: v.pipe(v.array(busyGpu), v.minLength(1), v.maxLength(1024)) }),
  v.object({
    type: v.literal('xid'),
    code: count,
    gpu: count,
    address: v.pipe(v.string(), v.maxLength(40)),
    ranks: v.pipe(v.array(count), v.maxLength(10_000)),
    pid: v.nullable(count),
    message: v.pipe(v.string(), v.maxLength(400)),
    time: count,
  }),
  v.object({ type: v.picklist(['notice', 'start-notice']), message: sentence }),
  v.object({ type: v.literal('stalled') }),
  v.object({ type: v.literal('calls-differ'), sentence, where }),
  v.object({ type: v.literal('left-behind'), left: leftBehind, where }),
  v.object({ type: v.literal('last-position'), rank: count, where }),
  v.object({ type: v.literal('rankPositions'), where }),
  v.object({ type: v.literal('asked-to-end'), signal: v.picklist(['SIGTERM', 'SIGINT']) }),
  v.object({
    type: v.literal('tuning'),
    ranks: count,
    file: name,
    key: name,
    measured: v.boolean(),
  }),
]);

const invitation = v.object({
  schemaVersion: v.literal(1),
  jobId: v.string(),
  secret: v.pipe(v.string(), v.base64()),
  addresses,
  port,
});

const childOrder = v.object({ words: v.pipe(v.array(v.string()), v.minLength(1)) });
const childProblem = v.object({ problem: v.nullable(sentence) });
const childEnd = v.object({ status: v.nullable(count), stderr: sentence });

/** The version alone, so that the agent refuses an order of another version for its version and not for its shape. */
const versioned = v.object({ version: v.string() });

export function parseOrder(payload: Uint8Array): AgentOrder {
  return parse(order, payload, 'order');
}

export function parseOrderVersion(payload: Uint8Array): string {
  return parse(versioned, payload, 'order').version;
}

export function parseRankPositionsQuery(payload: Uint8Array): RankPositionsQuery {
  return parse(positionsQuestion, payload, 'rankPositions');
}

export function parseInvitation(payload: Uint8Array): Invitation {
  return parse(invitation, payload, 'invitation');
}

export function parseChildOrder(payload: Uint8Array): ChildOrder {
  return parse(childOrder, payload, 'child order');
}

export function parseChildProblem(payload: Uint8Array): ChildProblem {
  return parse(childProblem, payload, 'end of a child agent', MAX_AGENT_JSON_BYTES);
}

export function parseChildEnd(payload: Uint8Array): ChildEnd {
  return parse(childEnd, payload, 'end of a child agent', MAX_AGENT_JSON_BYTES);
}

export function parseReachQuestion(payload: Uint8Array): ReachQuestion {
  return parse(reachQuestion, payload, 'reach');
}

export function parseAggregateOrder(payload: Uint8Array): AggregateOrder {
  return parse(aggregateOrder, payload, 'aggregate');
}

export function parseStart(payload: Uint8Array): AgentStart {
  return parse(start, payload, 'start');
}

export function parseHello(payload: Uint8Array): AgentHello {
  return parse(hello, payload, 'hello', MAX_AGENT_JSON_BYTES);
}

export function parseReport(payload: Uint8Array): AgentReport {
  return parse(report, payload, 'report', MAX_AGENT_JSON_BYTES);
}

/** @throws ProtocolError that names the message, the field and the expected value */
function parse<T>(schema: v.GenericSchema<T>, payload: Uint8Array, what: string, maxBytes = MAX_PAYLOAD_BYTES): T {
  if (payload.length > maxBytes) throw new ProtocolError(`${what}: ${payload.length} bytes; ${maxBytes} is the most`);
  const result = v.safeParse(schema, decodeJson(payload, what), { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new ProtocolError(`${what}: ${v.getDotPath(issue) ?? 'the message'}: ${issue.message}`);
}

function decodeJson(payload: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
  } catch {
    throw new ProtocolError(`${what}: ${payload.byteLength} bytes that are no JSON`);
  }
}
