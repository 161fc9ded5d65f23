/** What would be measured on this machine: how many variants each collective has. */
import { availableParallelism } from 'node:os';
import type { CommPlan } from '../../control/plan/types.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { NUMBERED_FROM } from '../../control/planner/measured/candidates.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpuElements } from '../../control/topology/used-gpus.ts';
import { collectiveOfWord } from '../cli/collectives.ts';
import type { CollectiveWord } from '../../control/collectives.ts';
import { aggregatorsAt, inputOf, processorsInput, UNKNOWN_HOST } from '../plan/engine.ts';
import { localTables, localTopology, mostVisibleGpus } from '../local/host.ts';

interface MeasuredRanks {
  readonly ranks: number;
  /** That this machine plays. */
  readonly hosts: number;
  readonly hasAggregators: boolean;
  /** --device */
  readonly device: string;
}

export async function candidatesText(measured: MeasuredRanks, collectives: readonly CollectiveWord[]): Promise<string> {
  const { tuning, device: found } = await measuringPlan(measured);
  const counts = collectives.map((word) => {
    const name = collectiveOfWord(word);
    const variants = tuning.filter(
      ({ collective, upToBytes }) => collective === name && upToBytes !== null && upToBytes >= NUMBERED_FROM,
    );
    return `${word} ${variants.length}`;
  });
  return `variants device ${found}: ${counts.join(', ')}\n`;
}

async function measuringPlan({ ranks, hosts, hasAggregators, device }: MeasuredRanks): Promise<CommPlan> {
  const environment = { ...process.env, NCCLRUN_TUNE: 'measure' };
  const tables = await localTables(environment, { used: () => undefined, problem: () => undefined });
  const isOnHost = device === 'host' || (await mostVisibleGpus()) < ranks;
  const system = isOnHost ? null : (await localTopology()).system;
  if (system === null || gpuElements(system).length < ranks || ranks % hosts !== 0) {
    const known = { ...UNKNOWN_HOST, isOneMachine: hosts > 1, cores: availableParallelism() };
    // What is measured does not depend on where they run.
    const aggregators = aggregatorsAt(hasAggregators ? [{ place: 'member', host: 0 }] : []);
    return new Planner(null, environment).plan({ ...processorsInput(ranks, hosts, known, tables), aggregators }, true);
  }
  const { cluster } = planCluster([{ system, hosts, ranksPerHost: ranks / hosts }]);
  const onGpus = { ...environment, NCCLRUN_DEVICE: 'cuda' };
  return new Planner(null, environment).plan(
    inputOf(cluster, onGpus, { tables, busIds: [], host: { ...UNKNOWN_HOST, isOneMachine: hosts > 1 } }),
    true,
  );
}
