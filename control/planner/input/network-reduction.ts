/** Who reduces between the hosts of a communicator, instead of its ranks (NCCL's CollNet). */
import { anyNumber, wholeNumber } from './variables.ts';
import type { Environment } from './variables.ts';

/** Where an aggregator runs, a process that reduces what the members of a group send to it (native/aggregator). */
export type AggregatorPlace =
  /** On a host of the communicator (an index into its hosts), whose link it shares with the ranks there. */
  | { readonly place: 'member'; readonly host: number }
  /** On a host without ranks of the communicator. `speedMbps`: of the NIC that members reach it by; 0: unknown. */
  | { readonly place: 'other'; readonly name: string; readonly speedMbps: number };

/** At least one. */
export type AggregatorPlaces = readonly [AggregatorPlace, ...AggregatorPlace[]];

export type NetworkReduction =
  | { readonly by: 'none' }
  /** The switches of a plugin's collective network: no link carries more than the hosts' own. */
  | { readonly by: 'plugin' }
  | { readonly by: 'aggregators'; readonly aggregators: AggregatorPlaces };

/** The aggregators of a job, as ranks reach them, and where they run. */
interface Aggregators<Host> {
  /** As PlanAggregators have it. */
  readonly token: string;
  readonly servers: readonly { readonly address: string; readonly port: number; readonly runsOn: Host }[];
}

/** A host of the job. */
interface JobHost {
  /** Among those with ranks; null: it has none. */
  readonly index: number | null;
  readonly name: string;
  /** Of the NIC at the aggregator's address; 0: unknown. */
  readonly speedMbps: number;
}

export type JobAggregators = Aggregators<JobHost>;
/** To a communicator. */
export type PlannedAggregators = Aggregators<AggregatorPlace>;

/** `hostOf`: from a host's index in the job to that among the hosts of the communicator. */
export function aggregatorsFor(job: JobAggregators, hostOf: ReadonlyMap<number, number>): PlannedAggregators {
  const placeOf = ({ index, name, speedMbps }: JobHost): AggregatorPlace => {
    const host = index === null ? undefined : hostOf.get(index);
    return host === undefined ? { place: 'other', name, speedMbps } : { place: 'member', host };
  };
  return { ...job, servers: job.servers.map((server) => ({ ...server, runsOn: placeOf(server.runsOn) })) };
}

export const NO_REDUCTION: NetworkReduction = { by: 'none' };

/** Hosts of a communicator from which on a network reduces, by default. */
const THRESHOLD = 2;

/**
 * `aggregators`: those that the job has started. NCCL_COLLNET_ENABLE=0 leaves them unused, 1 asks for a plugin's network where there are none; whether
 * the plugin has one is known to the engines alone. Nothing reduces for fewer hosts than NCCL_COLLNET_NODE_THRESHOLD. Throws UnplannableError for a
 * value that means nothing.
 */
export function networkReductionOf(
  aggregators: readonly AggregatorPlace[],
  hosts: number,
  environment: Environment,
): NetworkReduction {
  const enabled = wholeNumber(environment, 'NCCL_COLLNET_ENABLE', 0, 1);
  const threshold = anyNumber(environment, 'NCCL_COLLNET_NODE_THRESHOLD') ?? THRESHOLD;
  if (enabled === 0 || hosts < threshold) return NO_REDUCTION;
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

function placeKey(aggregator: AggregatorPlace): string {
  return aggregator.place === 'member' ? `host ${aggregator.host}` : `other ${aggregator.speedMbps}`;
}
