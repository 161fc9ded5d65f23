/** How ranks of several hosts reach each other, for the model: what the network and the hosts are known to carry. */
import type { DeviceName } from '../../plan/types.ts';
import { SOCKETS } from '../network/network.ts';
import type { NetworkFacts } from '../network/network.ts';
import { NO_REDUCTION } from '../input/network-reduction.ts';
import { GPU_COSTS, GPU_LL_COSTS, HOST_COSTS } from '../tuning/between-costs.ts';
import type { Corrections } from '../tuning/between-costs.ts';
import type { BetweenTerms, Situation } from '../tuning/situation.ts';

interface TermsOptions extends Pick<BetweenTerms, 'channels' | 'pairChannels' | 'load'> {
  /** null: nobody knows the NICs. */
  readonly network: NetworkFacts | null;
  readonly corrections: Corrections;
}

/** Of hosts without topologies. */
export const UNKNOWN_RATES = { nicRate: null, linkRate: null };

/** Returns `situation` itself for one host. */
export function withTerms(situation: Situation, device: DeviceName, options: TermsOptions): Situation {
  return situation.hosts === 1 ? situation : { ...situation, between: termsOf(device, situation, options) };
}

/** `topology`: of the NICs that the hosts' topologies have, which count where those that the plan uses are not known. */
export function termsOf(
  device: DeviceName,
  topology: Pick<Situation, 'nicRate' | 'linkRate'>,
  { network, corrections, channels, pairChannels, load }: TermsOptions,
): BetweenTerms {
  return {
    device,
    costs: device === 'cuda' ? GPU_COSTS : HOST_COSTS,
    llCosts: device === 'cuda' && (network === null || network.name === SOCKETS) ? GPU_LL_COSTS : null,
    corrections,
    nicRate: rateOf(topology.nicRate, network?.rails ?? 1, network),
    linkRate: rateOf(topology.linkRate, 1, network),
    reduction: network?.reduction ?? NO_REDUCTION,
    load: Math.max(1, load),
    channels,
    pairChannels,
  };
}

/** Bits of a byte: Mbit/s are so many times bytes per microsecond. */
const BITS = 8;

/** Of so many NICs. */
function rateOf(ofTopology: number | null, nics: number, network: NetworkFacts | null): number | null {
  if (network?.isOneMachine === true) return null;
  if (network !== null && network.speedMbps > 0) return (nics * network.speedMbps) / BITS;
  return ofTopology;
}
