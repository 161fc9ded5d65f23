/** A plan for measuring: a row for every variant that the engine has, so that each can be asked for by its number. */
import { COLLECTIVES } from '../../plan/layout.ts';
import { areMessagesBetweenGpuHosts, hasRails, isCollnet, isVariantBetweenGpuHosts } from '../../plan/possible.ts';
import type { CollectiveName, DeviceName, ProtocolName, TuningRow, Variant } from '../../plan/types.ts';
import { maxChannelsBetween, withHostSlots } from '../device/gpu-hosts.ts';
import { MIN_THREADS, THREADS, variantsOnGpus } from '../device/gpu-tuning.ts';
import type { ChannelBudget } from '../device/gpu-tuning.ts';
import { PROTOCOLS_ON_HOSTS, variantOnHost } from '../device/host-tuning.ts';
import { possibleVariants } from '../device/preferred.ts';
import type { NetworkReduction } from '../input/network-reduction.ts';
import type { AlgorithmAndProtocol } from '../input/preferences.ts';
import { algorithmsBetween, choicesFor, reducedBetween } from '../tuning/choices.ts';
import type { Situation } from '../tuning/situation.ts';

/** Maximum of channels on processors, where the traffic of two ranks fills one channel. */
export const MAX_CHANNELS_ON_HOSTS = 2;
/** First size of a measuring plan's numbered rows, beyond all real sizes. */
export const NUMBERED_FROM = 2 ** 40;

const PROTOCOLS_BETWEEN_HOSTS: readonly ProtocolName[] = ['simple', 'll'];

interface SearchContext extends ChannelBudget {
  readonly device: DeviceName;
  readonly situation: Situation;
  readonly reduction: NetworkReduction;
}

/**
 * `planned`: rows made without a table. They stay where they are, since the engine makes some variants of other collectives, which it asks the
 * plan for by their own bytes. Row k of a collective serves NUMBERED_FROM + k bytes.
 */
export function measuringRows(
  planned: readonly TuningRow[],
  context: SearchContext,
  finished: (collective: CollectiveName, variant: Variant) => Variant,
): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const own = planned.filter((row) => row.collective === collective);
    if (collective === 'barrier') return own;
    const kernel = own.at(-1)?.variants.at(-1);
    if (kernel === undefined) return own;
    const variants = distinct([
      ...own.flatMap(({ variants: [first] }) => (first === undefined ? [] : [first])),
      ...candidates(collective, context).map((variant) => finished(collective, variant)),
    ]);
    const numbered = variants.map(
      (variant, index): TuningRow => ({
        collective,
        upToBytes: NUMBERED_FROM + index,
        variants: withFallback(variant, kernel),
      }),
    );
    return [
      ...own.map((row): TuningRow => ({ ...row, upToBytes: row.upToBytes ?? NUMBERED_FROM - 1 })),
      ...numbered,
      // A plan must cover every size.
      { collective, upToBytes: null, variants: [kernel] },
    ];
  });
}

/** Algorithm × protocol × channels. */
function candidates(collective: CollectiveName, { device, situation, reduction, ...budget }: SearchContext): Variant[] {
  return possibleOn(device, collective, situation, reduction).flatMap((variant) => {
    if (device === 'host')
      return channelCounts(variant.algorithm === 'ring' ? MAX_CHANNELS_ON_HOSTS : 1).map((channels) =>
        variantOnHost(variant, channels),
      );
    const own = situation.hosts > 1 ? { ...budget, channels: maxChannelsBetween(variant, budget) } : budget;
    return channelCounts(variantsOnGpus.maxChannels(collective, variant, own)).flatMap((channels) =>
      threadCounts(variant.protocol, channels).map((threads) =>
        variantsOnGpus.make(variant, { channels, threads }, budget.ranks),
      ),
    );
  });
}

/** Variants of a table that came from elsewhere may be none of this device's. */
export function isPossible(
  collective: CollectiveName,
  variant: AlgorithmAndProtocol & { readonly channels: number },
  {
    device,
    situation,
    reduction,
    pairChannels,
  }: Omit<SearchContext, keyof ChannelBudget> & Pick<ChannelBudget, 'pairChannels'>,
): boolean {
  if (isCollnet(variant.algorithm))
    return (
      variant.protocol === 'simple' &&
      byNetwork(collective, device, situation, reduction).some(({ algorithm }) => algorithm === variant.algorithm)
    );
  if (device === 'cuda' && situation.hosts > 1) {
    const asMessages = areMessagesBetweenGpuHosts(collective);
    return isVariantBetweenGpuHosts(
      collective,
      { ...variant, asMessages, requires: variant.protocol === 'll' ? ['hostSlots'] : [] },
      { ranks: situation.ranks, pairChannels: asMessages ? variant.channels : pairChannels },
    );
  }
  return possibleOn(device, collective, situation, reduction).some(
    ({ algorithm, protocol }) => algorithm === variant.algorithm && protocol === variant.protocol,
  );
}

function possibleOn(
  device: DeviceName,
  collective: CollectiveName,
  situation: Situation,
  reduction: NetworkReduction,
): AlgorithmAndProtocol[] {
  const reduced = byNetwork(collective, device, situation, reduction);
  if (device === 'host') return [...possibleOnHosts(collective, situation), ...reduced];
  if (situation.hosts === 1)
    return choicesFor(collective, situation).map(({ algorithm, protocol }) => ({ algorithm, protocol }));
  const byRanks = algorithmsBetween(collective, device, situation).flatMap((algorithm) =>
    PROTOCOLS_BETWEEN_HOSTS.map((protocol) => ({ algorithm, protocol })),
  );
  return [...byRanks, ...reduced];
}

function byNetwork(
  collective: CollectiveName,
  device: DeviceName,
  situation: Situation,
  reduction: NetworkReduction,
): AlgorithmAndProtocol[] {
  const forms = reduction.by === 'none' ? [] : reducedBetween(collective, device, situation);
  // A communicator has one form, for all sizes.
  return forms.slice(0, 1).map((algorithm) => ({ algorithm, protocol: 'simple' }));
}

function possibleOnHosts(collective: CollectiveName, situation: Situation): AlgorithmAndProtocol[] {
  // Sends and receives meet by their order alone (native/datapath/launch.cc).
  const protocols = collective === 'sendRecv' ? PROTOCOLS_ON_HOSTS.slice(0, 1) : PROTOCOLS_ON_HOSTS;
  return possibleVariants(collective, { protocols, rails: hasRails('host', situation) });
}

/** Powers of two, and all that there are. */
function channelCounts(maxChannels: number): number[] {
  const counts: number[] = [];
  for (let channels = 1; channels < maxChannels; channels *= 2) counts.push(channels);
  return [...counts, maxChannels];
}

/** Fewer where they move one piece of few bytes. */
function threadCounts(protocol: ProtocolName, channels: number): number[] {
  if (protocol === 'simple' || channels > 1) return [THREADS];
  const counts: number[] = [];
  for (let threads = MIN_THREADS; threads <= THREADS; threads *= 2) counts.push(threads);
  return counts;
}

function distinct(variants: readonly Variant[]): Variant[] {
  const known = new Map(variants.map((variant) => [nameOf(variant), variant]));
  return [...known.values()];
}

function nameOf({ algorithm, protocol, channels, threads }: Variant): string {
  return `${algorithm} ${protocol} ${channels} ${threads}`;
}

/** A row's last variant must need nothing; `kernel`: one that does not, where ranks do not agree on copies. */
export function withFallback(variant: Variant, kernel: Variant): Variant[] {
  if (variant.algorithm === 'copyEngine') return [{ ...variant, requires: ['publishedAddresses'] }, kernel];
  if (isCollnet(variant.algorithm)) return [{ ...variant, requires: ['networkReduction'] }, kernel];
  if (variant.requires.includes('hostSlots')) return withHostSlots(variant);
  if (variant.protocol !== 'll128') return [{ ...variant, requires: [] }];
  return [
    { ...variant, requires: ['wholeLines'] },
    { ...variant, protocol: 'simple', requires: [] },
  ];
}
