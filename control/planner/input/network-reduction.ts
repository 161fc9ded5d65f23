/** Who reduces between the hosts of a communicator, instead of its ranks (NCCL's CollNet). */
import { wholeNumber } from './variables.ts';
import type { Environment } from './variables.ts';

/** A process that reduces what the members of a group send to it (native/aggregator), and where it runs. */
export type Aggregator =
  /** On a host of the communicator (an index into its hosts), whose link it shares with the ranks there. */
  | { readonly place: 'member'; readonly host: number }
  /** On a host without ranks of the communicator. `speedMbps`: of the NIC that members reach it by; 0: unknown. */
  | { readonly place: 'other'; readonly name: string; readonly speedMbps: number };

/** At least one. */
export type Aggregators = readonly [Aggregator, ...Aggregator[]];

export type NetworkReduction =
  | { readonly by: 'none' }
  /** The switches of a plugin's collective network: no link carries more than the hosts' own. */
  | { readonly by: 'plugin' }
  | { readonly by: 'aggregators'; readonly aggregators: Aggregators };

export const NO_REDUCTION: NetworkReduction = { by: 'none' };

/**
 * `aggregators`: those that the job has started. NCCL_COLLNET_ENABLE=0 leaves them unused, 1 asks for a plugin's network where there are none; whether
 * the plugin has one is known to the engines alone. Throws UnplannableError for another value.
 */
export function networkReductionOf(aggregators: readonly Aggregator[], environment: Environment): NetworkReduction {
  const enabled = wholeNumber(environment, 'NCCL_COLLNET_ENABLE', 0, 1);
  if (enabled === 0) return NO_REDUCTION;
  const [first, ...others] = aggregators;
  if (first !== undefined) return { by: 'aggregators', aggregators: [first, ...others] };
  return enabled === 1 ? { by: 'plugin' } : NO_REDUCTION;
}

/** Names what the times of a reduction by the network depend on, for tables of measured times; undefined: there is none. */
export function reductionKey(reduction: NetworkReduction): string | undefined {
  switch (reduction.by) {
    case 'none':
      return undefined;
    case 'plugin':
      return 'plugin';
    case 'aggregators':
      return `aggregators ${reduction.aggregators.map(placeKey).join(', ')}`;
    default:
      return reduction satisfies never;
  }
}

function placeKey(aggregator: Aggregator): string {
  return aggregator.place === 'member' ? `host ${aggregator.host}` : `other ${aggregator.speedMbps}`;
}
