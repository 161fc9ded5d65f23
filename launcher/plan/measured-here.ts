/** What this machine knows of the hosts that are planned for: its NICs, and what ncclrun tune has measured. */
import { availableParallelism } from 'node:os';
import type { PlannedCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { channelSetOf } from '../../control/planner/channel-set.ts';
import { situationOnGpus } from '../../control/planner/device/gpus.ts';
import { situationOnHosts } from '../../control/planner/device/host.ts';
import type { Situation } from '../../control/planner/tuning/situation.ts';
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { Preferences } from '../../control/planner/input/preferences.ts';
import type { FoundTable } from '../../control/planner/measured/store.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { describeOneHost, networkFacts, nicsBetween } from '../../control/planner/network/network.ts';
import type { NetworkFacts } from '../../control/planner/network/network.ts';
import type { Element } from '../../control/topology/element.ts';
import { gpuElements, gpusByAddress } from '../../control/topology/used-gpus.ts';
import { localNetwork, localTables } from '../local/host.ts';
import { makePaint } from '../text/colour.ts';
import { standardStreams } from '../report/standard-streams.ts';
import { ourLine } from '../report/summary.ts';
import { inputOf, UNKNOWN_HOST } from './engine.ts';
import type { KnownHost, MeasuredHere } from './engine.ts';

export interface MeasuredOnMachine extends MeasuredHere {
  /** Of its ranks. */
  readonly table: FoundTable | null;
  /** As networkText(); empty where the hosts are not like this machine. */
  readonly network: string;
  /** What the model is asked about. */
  readonly situation: Situation;
}

interface PlannedFor {
  /** This machine, if it is planned for; else its hosts have the topologies of files. */
  readonly system: Element | null;
  /** One machine plays all hosts. */
  readonly isOneMachine: boolean;
  readonly preferences: Preferences;
  /** Absent: none. */
  readonly aggregatorPlaces?: readonly AggregatorPlace[];
}

export async function measuredHere(
  planned: PlannedCluster,
  { system, isOneMachine, preferences, aggregatorPlaces = [] }: PlannedFor,
): Promise<MeasuredOnMachine> {
  const { cluster } = planned;
  const isHere = system !== null;
  const tables = isHere ? await localTables(process.env, { used: () => undefined, problem }) : null;
  const severalHosts = cluster.hosts.length > 1;
  const host = isHere && severalHosts ? thisHost(isOneMachine) : { ...UNKNOWN_HOST, isOneMachine };
  const busIds = isHere ? busIdsOf(system) : [];
  const known = { tables, busIds, host, aggregatorPlaces };
  const input = inputOf(cluster, process.env, known);
  const device = input.peers[0]?.device ?? 'host';
  const shape = { input, channelSet: channelSetOf(input), network: networkOf(input), preferences };
  const corrections = tables?.corrections(device, shape) ?? {};
  // Alone on a host, processors have no topology in a job.
  const table = device === 'cuda' || severalHosts ? (tables?.find(device, shape) ?? null) : null;
  const onProcessors = device === 'host' && severalHosts;
  const situation = onProcessors
    ? situationOnHosts(shape, corrections)
    : situationOnGpus(planned, preferences, { network: shape.network, corrections });
  return { ...known, table, situation, network: isHere && severalHosts ? networkText(input) : '' };
}

function busIdsOf(system: Element): string[] {
  const addresses = new Map([...gpusByAddress(system)].flatMap(([address, gpus]) => gpus.map((gpu) => [gpu, address])));
  return gpuElements(system).map((gpu) => (addresses.get(gpu) ?? 0).toString(16));
}

/** As its agent would report it. */
export function thisHost(isOneMachine: boolean): KnownHost {
  const { nics, hardware, addresses, verbs } = localNetwork();
  const [address = null] = addresses;
  return { isOneMachine, cores: availableParallelism(), hardware, nics: withFirst(nics, address), verbs };
}

/** The NIC of that address comes first, the others in their order. */
export function withFirst<Nic extends { readonly address: string | null }>(
  nics: readonly Nic[],
  address: string | null,
): Nic[] {
  const [own = [], others = []] = [true, false].map((wanted) =>
    nics.filter((nic) => (nic.address === address) === wanted),
  );
  return [...own, ...others];
}

/** null: there is one host. */
export function networkOf(input: PlanInput): NetworkFacts | null {
  const between = nicsBetween(input, process.env);
  return between === null ? null : networkFacts(input, between, process.env);
}

/** A line for people: the network between hosts like this machine, and why it is that one; empty for one host. */
export function networkText(input: PlanInput): string {
  const between = nicsBetween(input, process.env);
  return between === null ? '' : `${describeOneHost(input, between)}\n`;
}

/** Tables of this machine, whose faults are reported on stderr. */
export function tablesHere(used: (file: string) => void): Promise<Tables | null> {
  return localTables(process.env, { used: ({ file }) => used(file), problem });
}

function problem(message: string): void {
  void standardStreams().stderr.printPainted(ourLine(message, makePaint(false, process.env)));
}
