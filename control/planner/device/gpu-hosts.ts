/** Variants of GPUs of several hosts, which the network connects under protocol Simple and, for small sizes, LL. */
import { areMessagesBetweenGpuHosts } from '../../plan/possible.ts';
import { COLLECTIVES } from '../../plan/layout.ts';
import type { TuningRow, Variant } from '../../plan/types.ts';
import type { AlgorithmAndProtocol, Preferences } from '../input/preferences.ts';
import { channelsOf } from '../tuning/between.ts';
import { choicesFor } from '../tuning/choices.ts';
import type { Situation } from '../tuning/situation.ts';
import { rowsOfSteps, stepsOf } from './gpu-tuning.ts';
import type { ChannelBudget, PassesOf } from './gpu-tuning.ts';

/**
 * A further channel is another message for the proxy, which takes it longer than a block takes for its threads' next pass. Under Simple two
 * are worth it from where a message and its header exceed 64 KiB, which takes TCP a second segment, and from 256 KiB eight, which keep the
 * GPU's copies and the network's busy; three to seven are slower than either. Measured between two GPUs, 12 KiB to 2 MiB
 * (docs/performance-gpus.md).
 */
const passesOf: PassesOf = (protocol, channels) => {
  if (protocol !== 'simple' || channels === 2 || channels >= 8) return 2;
  return channels === 1 ? 15 / 16 : 0;
};

export function tuningBetweenHosts(situation: Situation, budget: ChannelBudget, preferences: Preferences): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const asMessages = areMessagesBetweenGpuHosts(collective);
    const budgetOf = (step: AlgorithmAndProtocol): ChannelBudget => {
      const own = withFewer(budget, maxChannelsBetween(step, budget));
      return collective === 'allReduce' ? withFewer(own, channelsOf(collective, step.algorithm, own)) : own;
    };
    const steps = stepsOf(collective, choicesFor(collective, situation), preferences, situation);
    return rowsOfSteps(collective, steps, budgetOf, passesOf).map((row) => ({
      ...row,
      variants: row.variants.flatMap((variant) => withHostSlots({ ...variant, asMessages })),
    }));
  });
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
