/** What a plan decides for the GPUs of one host. */
import { COLLECTIVES } from '../plan/layout.ts';
import type { CollectiveName, Form, ProtocolName, TuningRow } from '../plan/types.ts';
import { UnplannableError } from './check.ts';
import type { PlanInput } from './input.ts';
import type { Decisions } from './plan.ts';
import type { Preferences, Way } from './preferences.ts';
import { ringByHost } from './ring.ts';
import { preferredWay } from './wish.ts';

/** Blocks that the largest sizes use: so many of 512 threads fill what NVLinks carry (2 × H200). */
const MOST_CHANNELS = 64;
/** All blocks of a launch wait for peers, so each must find a multiprocessor, and those of another communicator's launch beside them. */
const LAUNCHES_AT_ONCE = 2;
/** One in so many channels is left to copies that a rank makes for itself while it sends and receives. */
const COPYING = 5;
/** A power of two of steps: their numbers modulo 2^32 go round the slots (native/device/cuda/simple.cuh). */
const BUFFER = { steps: 4, stepBytes: 256 * 1024 } as const;
/** Two steps, which go round a ring one behind the other; a multiple of the formulas' grain, which is 3840 bytes of 512 threads: no third, short one. */
const CHUNK_BYTES = 136 * 3840;
const THREADS = 512;
const LEAST_THREADS = 64;
/** What the threads of a block move at once under protocol LL; with more, another channel takes part. */
const LL_BYTES_PER_CHANNEL = 4 * 1024;
const LL128_BYTES_PER_CHANNEL = 7680;
const SPIN_NANOSECONDS = 50_000;

/** Protocols of GPUs, the one for all sizes first. */
const PROTOCOLS: readonly ProtocolName[] = ['simple', 'll128', 'll'];

interface Step extends Way {
  readonly upToBytes: number | null;
}

export function decideOnGpus(input: PlanInput, preferences: Preferences): Decisions {
  if (input.hosts.length > 1) {
    throw new UnplannableError(
      `the ranks use GPUs of ${input.hosts.length} hosts: this version connects those of one host only; use NCCLRUN_DEVICE=host with buffers in ` +
        'ordinary memory',
    );
  }
  const ring = ringByHost(input.peers);
  const limits = input.peers.map(({ multiprocessors, mostChannels }) =>
    Math.min(mostChannels === 0 ? MOST_CHANNELS : mostChannels, Math.floor(multiprocessors / LAUNCHES_AT_ONCE)),
  );
  const channels = Math.max(1, Math.min(MOST_CHANNELS, ...limits));
  return {
    device: 'cuda',
    channels: Array.from({ length: channels }, () => ({ ring })),
    transports: { sameHost: preferences.gpusReachEachOther ? 'p2p' : 'shm', otherHost: 'socket' },
    ringBuffer: BUFFER,
    pairBuffer: BUFFER,
    tuning: tuningOnGpus({ ranks: input.peers.length, channels }, preferences),
    spinNanoseconds: SPIN_NANOSECONDS,
  };
}

const KiB = 1024;
const MiB = 1024 * KiB;

function simple(algorithm: Form['algorithm']): Step {
  return { upToBytes: null, algorithm, protocol: 'simple' };
}
function direct(upToBytes: number, protocol: Form['protocol']): Step {
  return { upToBytes, algorithm: 'directOneShot', protocol };
}
function twoShot(upToBytes: number, protocol: Form['protocol']): Step {
  return { upToBytes, algorithm: 'directTwoShot', protocol };
}

/** Sizes are those that a row is chosen by: of the larger of a rank's two buffers. */
function stepsOf(ranks: number): Readonly<Record<CollectiveName, readonly Step[]>> {
  const two = ranks === 2; // measured; of more, a rank sends more
  const scattered = [
    direct((two ? 256 : 64) * KiB * ranks, 'll'),
    direct((two ? 16 : 2) * MiB * ranks, 'll128'),
    simple(two ? 'directOneShot' : 'ring'),
  ];
  const rooted = [direct(32 * KiB, 'll'), direct(4 * MiB, 'll128'), simple(two ? 'directOneShot' : 'ring')];
  const paired = [
    direct(32 * KiB * ranks, 'll'),
    direct((two ? 16 : 2) * MiB * ranks, 'll128'),
    simple('directOneShot'),
  ];
  // Two ranks send each other all they have in one step, with as many bytes as in two.
  const inParts = two ? direct : twoShot;
  return {
    allReduce: [direct((two ? 256 : 64) * KiB, 'll'), inParts((two ? 32 : 4) * MiB, 'll128'), simple('ring')],
    allGather: paired,
    reduceScatter: scattered,
    broadcast: rooted,
    reduce: rooted,
    allToAll: paired,
    gather: paired,
    scatter: paired,
    sendRecv: [direct(32 * KiB, 'll'), direct(32 * MiB, 'll128'), simple('directOneShot')],
    barrier: [{ upToBytes: null, algorithm: 'directOneShot', protocol: 'll' }],
  };
}

interface Among {
  readonly ranks: number;
  /** Of the plan. */
  readonly channels: number;
}

function tuningOnGpus({ ranks, channels }: Among, preferences: Preferences): TuningRow[] {
  const steps = stepsOf(ranks);
  return COLLECTIVES.flatMap((collective) => {
    const chosen = steps[collective].map(
      (step): Step =>
        collective === 'barrier' ? step : { ...step, ...preferredWay(collective, step, PROTOCOLS, preferences) },
    );
    return chosen.flatMap((step, place) =>
      rowsOf(collective, step, chosen[place - 1]?.upToBytes ?? 0, {
        ranks: collective === 'barrier' ? 1 : ranks,
        channels,
      }),
    );
  });
}

/** A row for each number of channels: as many as the size keeps busy. */
function rowsOf(collective: CollectiveName, step: Step, from: number, among: Among): TuningRow[] {
  const perChannel = bytesPerChannel(collective, step, among.ranks);
  const most = channelsFor(collective, step, among);
  const rows: TuningRow[] = [];
  // What one block's threads move at once needs no more of them.
  for (let threads = LEAST_THREADS; step.protocol !== 'simple' && threads < THREADS; threads *= 2) {
    const upToBytes = Math.floor((perChannel * threads) / THREADS);
    if (upToBytes > from && (step.upToBytes === null || upToBytes < step.upToBytes))
      rows.push(row(collective, upToBytes, step, 1, threads));
  }
  for (let channels = 1; channels < most; channels *= 2) {
    const upToBytes = channels * perChannel;
    if (upToBytes <= from) continue;
    if (step.upToBytes !== null && upToBytes >= step.upToBytes) break;
    rows.push(row(collective, upToBytes, step, channels, THREADS));
  }
  const enough = step.upToBytes === null ? most : Math.min(most, Math.ceil(step.upToBytes / perChannel));
  const threads = collective === 'barrier' ? LEAST_THREADS : THREADS;
  rows.push(row(collective, step.upToBytes, step, Math.max(1, enough), threads));
  return rows;
}

function channelsFor(collective: CollectiveName, step: Step, { ranks, channels }: Among): number {
  if (collective === 'barrier') return 1;
  return isInPairs(collective, step, ranks) ? channelsOfMessage(collective, ranks, channels) : channels;
}

/** Whether the engine makes sends and receives of it (native/core/cuda_launcher.cc). */
export function isInPairs(collective: CollectiveName, { algorithm, protocol }: Way, ranks: number): boolean {
  if (collective === 'sendRecv') return true;
  if (protocol !== 'simple' || algorithm !== 'directOneShot') return false;
  return collective === 'allGather' || collective === 'allToAll' || (collective === 'broadcast' && ranks === 2);
}

/**
 * Of a plan's channels what a message has: those of a group share the multiprocessors, and copies have theirs. Only of a broadcast's message is
 * it known that the ranks have no other.
 */
export function channelsOfMessage(collective: CollectiveName, ranks: number, channels: number): number {
  const copying = Math.max(1, Math.floor(channels / COPYING));
  const messages = collective === 'broadcast' ? 1 : Math.max(1, 2 * (ranks - 1));
  return Math.max(1, Math.floor((channels - copying) / messages));
}

function bytesPerChannel(collective: CollectiveName, { algorithm, protocol }: Step, ranks: number): number {
  const wholeAtEveryRank = ['allReduce', 'broadcast', 'reduce', 'sendRecv'].includes(collective);
  const parts = wholeAtEveryRank && algorithm !== 'directTwoShot' ? 1 : ranks;
  const bytes = { ll: LL_BYTES_PER_CHANNEL, ll128: LL128_BYTES_PER_CHANNEL, simple: 64 * KiB }[protocol];
  return bytes * parts;
}

function row(
  collective: CollectiveName,
  upToBytes: number | null,
  step: Step,
  channels: number,
  threads: number,
): TuningRow {
  const form = formOf(step, channels, threads);
  if (step.protocol !== 'll128') return { collective, upToBytes, forms: [form] };
  return {
    collective,
    upToBytes,
    forms: [
      { ...form, requires: ['wholeLines'] },
      { ...form, protocol: 'simple' },
    ],
  };
}

function formOf({ algorithm, protocol }: Step, channels: number, threads: number): Form {
  return {
    algorithm,
    protocol,
    channels,
    chunkBytes: CHUNK_BYTES,
    threads,
    requires: [],
    predictedMicroseconds: 0,
    predictedMicrosecondsPerMebibyte: 0,
  };
}
