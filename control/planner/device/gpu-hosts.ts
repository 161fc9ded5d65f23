/** Variants of GPUs of several hosts, which the network connects under protocol Simple. */
import { areMessagesBetweenGpuHosts, isVariantBetweenGpuHosts } from '../../plan/possible.ts';
import { COLLECTIVES } from '../../plan/layout.ts';
import type { AlgorithmName, CollectiveName, TuningRow } from '../../plan/types.ts';
import type { Preferences } from '../input/preferences.ts';
import type { Choice } from '../tuning/choices.ts';
import type { Prediction, Situation } from '../tuning/network.ts';
import { rowsOf, stepsOf } from './gpu-tuning.ts';
import type { ChannelBudget } from './gpu-tuning.ts';

/** Microseconds from the kernel of one host to that of another over sockets, and from one GPU of a host to the next. */
const HOP_BETWEEN = 25;
const HOP_INSIDE = 3;
/** What the sockets of a host carry. Another network is faster in both, and the sizes at which variants change stay about where they are. */
const BYTES_PER_MICROSECOND = 4000;
/** Only rings send a step before they have received the one before. */
const PIPELINING = 2;

const ALGORITHMS: readonly AlgorithmName[] = ['ring', 'tree', 'directOneShot', 'directTwoShot'];
const WITH_ROOT: readonly CollectiveName[] = ['broadcast', 'reduce'];

export function tuningBetweenHosts(situation: Situation, budget: ChannelBudget, preferences: Preferences): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const asMessages = areMessagesBetweenGpuHosts(collective);
    const steps = stepsOf(collective, choicesBetweenGpuHosts(collective, situation), preferences, situation);
    return steps
      .flatMap((step, index) => rowsOf(collective, step, steps[index - 1]?.upToBytes ?? 0, budget))
      .map((row) => ({ ...row, variants: row.variants.map((variant) => ({ ...variant, asMessages })) }));
  });
}

/** All that the engine has, with their predictions; none for messages, which have no alternative. */
function choicesBetweenGpuHosts(collective: CollectiveName, situation: Situation): Choice[] {
  if (areMessagesBetweenGpuHosts(collective) || collective === 'sendRecv' || collective === 'barrier') return [];
  return ALGORITHMS.flatMap((algorithm) => {
    const variant = { algorithm, protocol: 'simple', asMessages: false, channels: 1 } as const;
    if (!isVariantBetweenGpuHosts(collective, variant, { ranks: situation.ranks, pairChannels: 1 })) return [];
    return [{ algorithm, protocol: 'simple', prediction: predict(collective, algorithm, situation) }];
  });
}

/** What a chunk passes, and how many times an operation's bytes leave the host that sends most. */
function predict(collective: CollectiveName, algorithm: AlgorithmName, { ranks, hosts }: Situation): Prediction {
  const local = Math.ceil(ranks / hosts);
  const remote = ranks - local;
  const passes = collective === 'allReduce' ? 2 : 1;
  const between = (microseconds: number, copies: number): Prediction => ({
    microseconds,
    bytesPerMicrosecond: BYTES_PER_MICROSECOND / copies,
    fill: null,
  });
  if (algorithm === 'ring') {
    const hop = (hosts * HOP_BETWEEN + (ranks - hosts) * HOP_INSIDE) / ranks;
    const copies = WITH_ROOT.includes(collective) ? 1 : (passes * (ranks - 1)) / ranks;
    return between(passes * (ranks - 1) * hop, copies);
  }
  if (algorithm === 'tree') {
    const down = Math.ceil(Math.log2(hosts)) * HOP_BETWEEN + (local - 1) * HOP_INSIDE;
    // A host inside of the tree has a parent and two children.
    return between(passes * down, 3 * PIPELINING);
  }
  const hop = HOP_BETWEEN + HOP_INSIDE;
  if (algorithm === 'directTwoShot') return between(2 * hop, (2 * PIPELINING * local * remote) / ranks);
  if (WITH_ROOT.includes(collective)) return between(hop, PIPELINING * remote);
  const parts = collective === 'allReduce' ? 1 : ranks;
  return between(hop, (PIPELINING * local * remote) / parts);
}
