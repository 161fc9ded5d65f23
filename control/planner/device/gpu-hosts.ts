/** Variants of GPUs of several hosts, which the network connects under protocol Simple. */
import { areMessagesBetweenGpuHosts, hasRails, isVariantBetweenGpuHosts } from '../../plan/possible.ts';
import { COLLECTIVES } from '../../plan/layout.ts';
import type { AlgorithmName, CollectiveName, TuningRow } from '../../plan/types.ts';
import type { Preferences } from '../input/preferences.ts';
import type { Choice } from '../tuning/choices.ts';
import type { Prediction, Situation } from '../tuning/network.ts';
import { rowsOfSteps, stepsOf } from './gpu-tuning.ts';
import type { ChannelBudget } from './gpu-tuning.ts';

/**
 * Microseconds, of the two hosts that one machine with four H100 plays (docs/performance-gpus.md): from the kernel of one host to that of
 * another over sockets, from one GPU of a host to the next, for each further peer of a direct operation and for what it reduces, and before a
 * ring's or a tree's first step. Another network is faster in these and in what follows; the sizes at which variants change stay about where
 * they are.
 */
const HOP_BETWEEN = 22;
const HOP_INSIDE = 3;
const PEER = 8;
const REDUCED_PEER = 4;
const BEFORE_RING = 10;
const BEFORE_TREE = 20;
/** Bytes per microsecond on each channel that connects two ranks of different hosts. Rings and one-shot reductions have a step on its way always. */
const PIPELINED = 1000;
const IN_STEPS = 700;
const BY_TREE = 900;
/** And of all connections of a host. */
const OF_HOST = 10_000;

/**
 * An all_reduce by a ring or directly sends and receives on every channel at once: with more of them it takes up to twice as long from 1 to 2 MiB.
 */
const ALL_REDUCE_CHANNELS = 8;

const ALGORITHMS: readonly AlgorithmName[] = ['ring', 'tree', 'directOneShot', 'directTwoShot', 'rail'];
const WITH_ROOT: readonly CollectiveName[] = ['broadcast', 'reduce'];

export function tuningBetweenHosts(situation: Situation, budget: ChannelBudget, preferences: Preferences): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const asMessages = areMessagesBetweenGpuHosts(collective);
    const budgetOf = (algorithm: AlgorithmName): ChannelBudget =>
      collective === 'allReduce' && algorithm !== 'rail' ? withFewer(budget, ALL_REDUCE_CHANNELS) : budget;
    const steps = stepsOf(collective, choicesBetweenGpuHosts(collective, situation, budgetOf), preferences, situation);
    return rowsOfSteps(collective, steps, budgetOf).map((row) => ({
      ...row,
      variants: row.variants.map((variant) => ({ ...variant, asMessages })),
    }));
  });
}

function withFewer(budget: ChannelBudget, max: number): ChannelBudget {
  const { channels, pairChannels, minChannels } = budget;
  return {
    ...budget,
    channels: Math.min(channels, max),
    pairChannels: Math.min(pairChannels, max),
    minChannels: Math.min(minChannels, max),
  };
}

/** All that the engine has, with their predictions; none for messages, which have no alternative. */
function choicesBetweenGpuHosts(
  collective: CollectiveName,
  situation: Situation,
  budgetOf: (algorithm: AlgorithmName) => ChannelBudget,
): Choice[] {
  if (areMessagesBetweenGpuHosts(collective) || collective === 'sendRecv' || collective === 'barrier') return [];
  return ALGORITHMS.flatMap((algorithm) => {
    const variant = { algorithm, protocol: 'simple', asMessages: false, channels: 1 } as const;
    if (algorithm === 'rail' && !hasRails('cuda', situation)) return [];
    if (!isVariantBetweenGpuHosts(collective, variant, { ranks: situation.ranks, pairChannels: 1 })) return [];
    return [
      { algorithm, protocol: 'simple', prediction: predict(collective, algorithm, situation, budgetOf(algorithm)) },
    ];
  });
}

/** `copies`: how often the bytes of an operation cross one connection, which carries `rate` of them in a microsecond. */
function prediction(microseconds: number, copies: number, rate: number): Prediction {
  return { microseconds, bytesPerMicrosecond: rate / copies, fill: null };
}

function predict(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  { ranks, hosts }: Situation,
  { channels, pairChannels }: ChannelBudget,
): Prediction {
  const local = Math.ceil(ranks / hosts);
  const passes = collective === 'allReduce' ? 2 : 1;
  const isWhole = WITH_ROOT.includes(collective);
  if (algorithm === 'ring') {
    const hop = (hosts * HOP_BETWEEN + (ranks - hosts) * HOP_INSIDE) / ranks;
    const steps = passes * (ranks - 1);
    return prediction(BEFORE_RING + steps * hop, isWhole ? 1 : steps / ranks, channels * PIPELINED);
  }
  if (algorithm === 'tree') {
    const down = Math.ceil(Math.log2(hosts)) * HOP_BETWEEN + (local - 1) * HOP_INSIDE;
    return prediction(BEFORE_TREE + passes * down, 1, pairChannels * BY_TREE);
  }
  if (algorithm === 'rail') {
    const crossing = HOP_BETWEEN + (hosts - 2) * (PEER + REDUCED_PEER);
    const copies = (passes * (hosts - 1)) / ranks;
    return prediction(BEFORE_RING + passes * crossing + (local - 1) * HOP_INSIDE, copies, channels * IN_STEPS);
  }
  const isReduced = collective !== 'allGather' && collective !== 'broadcast';
  const hop = HOP_BETWEEN + (ranks - local) * (PEER + (isReduced ? REDUCED_PEER : 0));
  const rate = (ofConnection: number): number =>
    Math.min(ofConnection * pairChannels, OF_HOST / ((isWhole ? 1 : local) * (ranks - local)));
  if (algorithm === 'directTwoShot') return prediction(2 * hop, 2 / ranks, rate(IN_STEPS));
  const isPipelined = isWhole || collective === 'allReduce';
  return prediction(hop, isPipelined ? 1 : 1 / ranks, rate(isPipelined ? PIPELINED : IN_STEPS));
}
