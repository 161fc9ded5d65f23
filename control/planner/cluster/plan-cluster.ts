/** From the topologies of hosts to everything that is decided about the job's channels. */
import type { Element } from '../../topology/element.ts';
import { gpuElements, withRanks } from '../../topology/used-gpus.ts';
import { writeXml } from '../../topology/write-xml.ts';
import { buildMachine } from '../machine/build.ts';
import { DEFAULT_ROUTES, MachineRoutes } from '../machine/routes.ts';
import type { RouteOptions } from '../machine/routes.ts';
import type { Situation } from '../tuning/situation.ts';
import { Cluster } from './cluster.ts';
import type { ClusterHost } from './cluster.ts';
import { DEFAULT_SHAPE, shapeOf } from './host-shape.ts';
import type { HostShape, ShapeOptions } from './host-shape.ts';
import { ANY_CHANNELS } from '../input/limits.ts';
import type { ChannelLimits } from '../input/limits.ts';
import { situationOf } from './situation.ts';

/** Hosts of one kind that lie one behind the other. */
export interface HostGroup {
  readonly system: Element;
  readonly hosts: number;
  /** Of each host, on its first GPUs; null: on all. */
  readonly ranksPerHost: number | null;
}

export interface PlannedCluster {
  readonly cluster: Cluster;
  readonly situation: Situation;
}

interface PlanOptions {
  readonly shape: ShapeOptions;
  readonly routes: RouteOptions;
  readonly limits: ChannelLimits;
}

const DEFAULT_OPTIONS: PlanOptions = {
  shape: DEFAULT_SHAPE,
  routes: DEFAULT_ROUTES,
  limits: ANY_CHANNELS,
};

/** Ranks are numbered host by host. Throws a TopologyError. */
export function planCluster(
  groups: readonly HostGroup[],
  { shape: options, routes, limits }: PlanOptions = DEFAULT_OPTIONS,
): PlannedCluster {
  const hostCount = groups.reduce((sum, { hosts }) => sum + hosts, 0);
  const shapes: HostShape[] = [];
  const known = new Map<string, number>();
  const hosts: ClusterHost[] = [];
  let first = 0;
  for (const { system, hosts: count, ranksPerHost } of groups) {
    const used = withRanks(system, ranksPerHost ?? gpuElements(system).length);
    const key = writeXml(used);
    const shape = known.get(key) ?? shapes.length;
    if (shape === shapes.length) {
      shapes.push(shapeOf(new MachineRoutes(buildMachine(used), routes), hostCount > 1, options));
      known.set(key, shape);
    }
    const gpus = shapes[shape]?.routes.machine.gpus ?? [];
    for (let host = 0; host < count; host++) {
      hosts.push({ shape, ranks: Int32Array.from(gpus, ({ rank }) => first + rank) });
      first += gpus.length;
    }
  }
  const cluster = new Cluster(shapes, hosts, limits);
  return { cluster, situation: situationOf(cluster, limits.max) };
}
