/** Variants of GPUs of several hosts, which the network connects under protocol Simple and, for small sizes, LL. */
import { areMessagesBetweenGpuHosts } from '../../plan/possible.ts';
import type { CollnetName } from '../../plan/possible.ts';
import { COLLECTIVES } from '../../plan/layout.ts';
import type { TuningRow, Variant } from '../../plan/types.ts';
import type { AlgorithmAndProtocol, Preferences } from '../input/preferences.ts';
import { channelsOf } from '../tuning/between.ts';
import { choicesFor } from '../tuning/choices.ts';
import type { Situation } from '../tuning/situation.ts';
import { rowsOfSteps, stepsOf, THREADS, variantsOnGpus } from './gpu-tuning.ts';
import type { ChannelBudget } from './gpu-tuning.ts';
import { collnetFormFor } from './preferred.ts';

/** A further channel is another message for the proxy, which takes it longer than a block takes for its threads' next pass. */
const LL_PASSES = 2;

export function tuningBetweenHosts(situation: Situation, budget: ChannelBudget, preferences: Preferences): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const asMessages = areMessagesBetweenGpuHosts(collective);
    const budgetOf = (step: AlgorithmAndProtocol): ChannelBudget => {
      const own = withFewer(budget, maxChannelsBetween(step, budget));
      return collective === 'allReduce' ? withFewer(own, channelsOf(collective, step.algorithm, own)) : own;
    };
    const steps = stepsOf(collective, choicesFor(collective, situation), preferences, situation);
    const form = collective === 'allReduce' ? collnetFormFor(situation, preferences) : null;
    return rowsOfSteps(collective, steps, budgetOf, LL_PASSES).map((row) => ({
      ...row,
      variants: [
        ...(form === null ? [] : [byNetwork(form, row, budget)]),
        ...row.variants.flatMap((variant) => withHostSlots({ ...variant, asMessages })),
      ],
    }));
  });
}

/** Each channel has a group of its own, of which a network has few. */
const MAX_COLLNET_CHANNELS = 4;

/** Where the network reduces the call's type and operator; on as many channels as the row's first variant has. */
function byNetwork(algorithm: CollnetName, { variants }: TuningRow, { ranks, channels }: ChannelBudget): Variant {
  const count = Math.min(variants[0]?.channels ?? 1, channels, MAX_COLLNET_CHANNELS);
  const effort = { channels: count, threads: THREADS };
  return { ...variantsOnGpus.make({ algorithm, protocol: 'simple' }, effort, ranks), requires: ['networkReduction'] };
}

/** Rings have slots of their own for Simple alone, and use those of pairs for LL. */
export function maxChannelsBetween(
  { algorithm, protocol }: AlgorithmAndProtocol,
  { channels, pairChannels }: Pick<ChannelBudget, 'channels' | 'pairChannels'>,
): number {
  return algorithm === 'ring' && protocol === 'll' ? Math.min(channels, pairChannels) : channels;
}

/** Under LL what it requires, and the same under Simple, which requires nothing. */
export function withHostSlots(variant: Variant): Variant[] {
  if (variant.protocol !== 'll') return [variant];
  return [
    { ...variant, requires: ['hostSlots'] },
    { ...variant, protocol: 'simple', requires: [] },
  ];
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
