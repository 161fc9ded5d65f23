/** How large the slots between GPUs are: as large as a communicator's share of their memory allows. */
import { gpuMemoryOf, pairBytes } from '../../plan/gpu-memory.ts';
import type { GpuPlan } from '../../plan/gpu-memory.ts';
import type { PlannedPeer } from '../input/input.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

/** What a communicator may take of each GPU, by its number of ranks: the many pairs of more than four need more. */
interface Budget {
  readonly upToFour: number;
  readonly more: number;
}
/** A program's first communicators do most of its work. With the others, 64 of four ranks take less than 2 GB. */
const FIRST: Budget = { upToFour: 95 * MiB, more: 128 * MiB };
const FIRST_ONES = 4;
const LATER: Budget = { upToFour: 24 * MiB, more: 32 * MiB };

/** Bytes of slots. Wide: of pairs, on the channels that messages use; narrow: on the others. */
interface Sizes {
  readonly ring: number;
  readonly wide: number;
  readonly narrow: number;
  readonly lineSteps: number;
  readonly ll: number;
  readonly ll128: number;
}

/** A power of two of steps: their numbers modulo 2^32 go round the slots (native/cuda/kernels/simple.cuh). */
const STEPS = 4;

/**
 * The largest first, then what costs least is given up first: rings, which carry the largest reductions, keep their slots longest. Two ranks
 * have no others than those of the pair, and get the first of these (docs/performance-gpus.md: 256 KiB instead of 128 save a tenth; with 96 KiB of LL128
 * twice as large operations are single-step launches, which take 10 µs instead of 14).
 */
const LADDER: readonly Sizes[] = [
  { ring: 256, wide: 256, narrow: 256, lineSteps: 4, ll: 16, ll128: 96 },
  { ring: 256, wide: 128, narrow: 64, lineSteps: 4, ll: 16, ll128: 32 },
  { ring: 256, wide: 128, narrow: 32, lineSteps: 4, ll: 8, ll128: 16 },
  { ring: 256, wide: 128, narrow: 16, lineSteps: 4, ll: 8, ll128: 16 },
  { ring: 256, wide: 64, narrow: 16, lineSteps: 4, ll: 8, ll128: 16 },
  { ring: 256, wide: 64, narrow: 8, lineSteps: 4, ll: 8, ll128: 16 },
  { ring: 256, wide: 64, narrow: 8, lineSteps: 4, ll: 8, ll128: 8 },
  { ring: 256, wide: 64, narrow: 4, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 256, wide: 32, narrow: 2, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 128, wide: 64, narrow: 8, lineSteps: 4, ll: 8, ll128: 16 },
  { ring: 128, wide: 64, narrow: 4, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 64, wide: 64, narrow: 4, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 64, wide: 32, narrow: 4, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 32, wide: 32, narrow: 4, lineSteps: 4, ll: 4, ll128: 8 },
  { ring: 32, wide: 32, narrow: 2, lineSteps: 4, ll: 4, ll128: 4 },
  { ring: 32, wide: 32, narrow: 1, lineSteps: 4, ll: 2, ll128: 2 },
].map(({ lineSteps, ring, wide, narrow, ll, ll128 }) => ({
  lineSteps,
  ring: ring * KiB,
  wide: wide * KiB,
  narrow: narrow * KiB,
  ll: ll * KiB,
  ll128: ll128 * KiB,
}));

/** Not among its program's first ones, at one rank at least. */
export function isLater(peers: readonly Pick<PlannedPeer, 'communicators'>[]): boolean {
  return peers.some(({ communicators }) => communicators >= FIRST_ONES);
}

/** Between hosts, memory of the host that a rank takes for the slots of its rails. */
const RAIL_BYTES = 64 * MiB;
/** Slots of LL128, which does not cross the network. */
const NO_LINES = 128;

interface Wanted {
  readonly ranks: number;
  readonly hosts: number;
  /** Of the host that has most of them. */
  readonly localRanks: number;
  /** Whether rails can connect the hosts. */
  readonly rails: boolean;
  readonly channels: number;
  /** That a message may use: the first ones. */
  readonly messageChannels: number;
  readonly isLater: boolean;
}

export function gpuBuffersFor(wanted: Wanted): Pick<GpuPlan, 'ringBuffer' | 'pairBuffer' | 'gpuBuffers'> {
  const budget = budgetOf(wanted);
  const plans = LADDER.map((sizes) => planWith(sizes, wanted));
  const fitting =
    plans.find((plan) => gpuMemoryOf(plan).total <= budget && railBytes(plan, wanted) <= RAIL_BYTES) ?? plans.at(-1);
  if (fitting === undefined) throw new RangeError('the ladder has rungs');
  const { ringBuffer, pairBuffer, gpuBuffers } = fitting;
  return { ringBuffer, pairBuffer, gpuBuffers };
}

export function budgetOf({ localRanks, isLater: later }: Pick<Wanted, 'localRanks' | 'isLater'>): number {
  const { upToFour, more } = later ? LATER : FIRST;
  return localRanks <= 4 ? upToFour : more;
}

function railBytes(plan: GpuPlan, { hosts, rails }: Wanted): number {
  return rails ? 2 * (hosts - 1) * pairBytes(plan) : 0;
}

function planWith({ ring, wide, narrow, lineSteps, ll, ll128 }: Sizes, wanted: Wanted): GpuPlan {
  const { ranks, hosts, localRanks, rails, channels, messageChannels } = wanted;
  // The two ranks' rings and all that is theirs go by the pair.
  const pairChannels = ranks > 2 ? Math.min(channels, messageChannels) : channels;
  const lines = { llStepBytes: ll, ll128StepBytes: hosts > 1 ? NO_LINES : ll128 };
  return {
    ranks,
    hosts,
    localRanks,
    channels,
    ringBuffer: { steps: STEPS, stepBytes: ring },
    pairBuffer: { steps: STEPS, stepBytes: wide },
    gpuBuffers: {
      wideChannels: rails ? channels : pairChannels,
      narrowStepBytes: narrow,
      lineSteps,
      ...lines,
      pairChannels: hosts > 1 ? pairChannels : channels,
    },
  };
}
