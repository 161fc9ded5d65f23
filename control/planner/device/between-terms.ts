/** How ranks of several hosts reach each other, for the model: what the network and the hosts are known to carry. */
import type { DeviceName } from '../../plan/types.ts';
import { UNKNOWN_NET_MEGABITS } from '../machine/constants.ts';
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
    nicRate: nicRateOf(topology.nicRate, network),
    linkRate: linkRateOf(topology.linkRate, network),
    reduction: network?.reduction ?? NO_REDUCTION,
    load: Math.max(1, load),
    channels,
    pairChannels,
  };
}

/** Bits of a byte: Mbit/s are so many times bytes per microsecond. */
const BITS = 8;

function nicRateOf(nicRate: number | null, network: NetworkFacts | null): number | null {
  if (network?.isOneMachine === true) return null;
  if (network !== null && network.speedMbps > 0) return (network.rails * network.speedMbps) / BITS;
  return nicRate;
}

/** Of a NIC that is unknown beside faster ones of another network, as little as NCCL takes it for. */
function linkRateOf(linkRate: number | null, network: NetworkFacts | null): number | null {
  if (network === null) return linkRate;
  if (network.isOneMachine) return null;
  if (network.socketMbps > 0) return network.socketMbps / BITS;
  return network.name === SOCKETS ? linkRate : UNKNOWN_NET_MEGABITS / BITS;
}
