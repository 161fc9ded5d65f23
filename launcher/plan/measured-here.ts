/** What ncclrun tune has measured on this machine, for its plan. */
import type { PlannedCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { FoundTable } from '../../control/planner/measured/store.ts';
import { channelSetOf } from '../../control/planner/channel-set.ts';
import type { Element } from '../../control/topology/element.ts';
import { gpuElements, gpusByAddress } from '../../control/topology/used-gpus.ts';
import { localTables } from '../local/host.ts';
import { makePaint } from '../text/colour.ts';
import { standardStreams } from '../report/standard-streams.ts';
import { ourLine } from '../report/summary.ts';
import { inputOf } from './engine.ts';
import type { MeasuredHere } from './engine.ts';

export interface MeasuredOnMachine extends MeasuredHere {
  /** Of its GPUs. */
  readonly table: FoundTable | null;
}
export const NOTHING_MEASURED: MeasuredOnMachine = { tables: null, busIds: [], table: null };

/** `system`: this machine. */
export async function measuredHere({ cluster }: PlannedCluster, system: Element): Promise<MeasuredOnMachine> {
  const tables = cluster.hosts.length > 1 ? null : await localTables(process.env, { used: () => undefined, problem });
  if (tables === null) return NOTHING_MEASURED;
  const addresses = new Map([...gpusByAddress(system)].flatMap(([address, gpus]) => gpus.map((gpu) => [gpu, address])));
  const busIds = gpuElements(system).map((gpu) => (addresses.get(gpu) ?? 0).toString(16));
  const input = inputOf(cluster, process.env, { tables, busIds });
  const isOnGpus = input.peers[0]?.device === 'cuda';
  return {
    tables,
    busIds,
    table: isOnGpus ? tables.find('cuda', { input, channelSet: channelSetOf(input), network: null }) : null,
  };
}

export function problem(message: string): void {
  void standardStreams().stderr.printPainted(ourLine(message, makePaint(false, process.env)));
}
