/** A plan as `ncclrun plan --format json` prints it. Field names and units of graphs are NCCL's: GB/s, channels before doubling. */
import type { PlannedGpuMemory } from '../../control/plan/gpu-memory.ts';
import type { CollnetName } from '../../control/plan/possible.ts';
import type { CollectiveName } from '../../control/plan/types.ts';
import { ownAgreement } from '../../control/planner/cluster/agreement.ts';
import type { Agreement } from '../../control/planner/cluster/agreement.ts';
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import { Hierarchy } from '../../control/planner/cluster/hierarchy.ts';
import type { Situation } from '../../control/planner/tuning/situation.ts';
import type { Machine } from '../../control/planner/machine/node.ts';
import type { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { totalBandwidth } from '../../control/planner/search/graph.ts';
import type { FoundChannel, Graph, Pattern } from '../../control/planner/search/graph.ts';
import { measuredAt } from '../../control/planner/measured/rows.ts';
import { fastestAt } from '../../control/planner/measured/times.ts';
import type { FoundTable } from '../../control/planner/measured/store.ts';
import { collnetFormFor } from '../../control/planner/device/preferred.ts';
import { isPreferred } from '../../control/planner/input/preferences.ts';
import type { Preferences } from '../../control/planner/input/preferences.ts';
import { channelNics, nicViews } from './nics.ts';
import type { ChannelNicView, NicView, PortGids } from './nics.ts';
import { linkLoads, shareOf } from '../../control/planner/verify/link-loads.ts';
import { bestOf, choicesFor, preferredChoices, timeOf } from '../../control/planner/tuning/choices.ts';
import type { Choice } from '../../control/planner/tuning/choices.ts';

export interface GraphView {
  readonly pattern: Pattern;
  readonly nChannels: number;
  readonly bwIntra: number;
  readonly bwInter: number;
  readonly typeIntra: string;
  readonly typeInter: string;
  readonly crossNic: number;
  readonly sameChannels: number;
  /** Channels × the lesser of bwIntra and, with several hosts, bwInter. */
  readonly totalBw: number;
  /** The link that the channels fill most: what more of them, or faster ones, would ask too much of. null: they use none. */
  readonly bottleneck: BottleneckView | null;
  readonly channels: readonly ChannelView[];
}

interface BottleneckView {
  readonly from: string;
  readonly to: string;
  /** GB/s that the link carries, and those planned on it. */
  readonly bandwidth: number;
  readonly load: number;
  /** Links that are as full as this one, without it. */
  readonly others: number;
}

export interface ChannelView {
  /** Ranks of the host, from where the channel comes in. */
  readonly order: readonly number[];
  /** Device numbers of the NICs by which it comes in and goes out; none inside one host. */
  readonly nics: readonly number[];
}

interface HierarchyView {
  /** Each the ranks of one local index. */
  readonly rails: number;
  /** GB/s of one rail, and of all. */
  readonly bwInter: number;
  readonly totalBw: number;
  /** The farthest path to a NIC. */
  readonly typeInter: string;
  /** By rail: device number of the first host's NIC. */
  readonly nics: readonly number[];
}

interface TuningView {
  readonly collective: CollectiveName;
  /** Of the larger of a rank's two buffers. */
  readonly bytes: number;
  readonly algorithm: string;
  readonly protocol: string;
  readonly predictedMicroseconds: number;
  /** What ncclrun tune has measured; null: nothing for about so many bytes. */
  readonly measuredMicroseconds: number | null;
  /** Bus bandwidth as nccl-tests count it, GB/s. */
  readonly predictedBusBw: number;
  /** All other variants, the fastest first. */
  readonly others: readonly VariantView[];
}

export interface VariantView {
  readonly algorithm: string;
  readonly protocol: string;
  readonly predictedMicroseconds: number;
  readonly measuredMicroseconds: number | null;
  /** False: predicted only, or not what the user wants. */
  readonly isPossible: boolean;
}

export interface ShapeView {
  readonly hosts: number;
  readonly gpus: number;
  readonly nics: number;
  /** The NICs, by their position in the topology. */
  readonly nicTable: readonly NicView[];
  /** Of several hosts: by which NICs each ring comes in and goes out, and why. */
  readonly ringNics: readonly ChannelNicView[];
  readonly ring: GraphView;
  readonly tree: GraphView;
  readonly collnet: GraphView | null;
  readonly collnetDirect: GraphView | null;
}

export interface PlanView {
  readonly version: 1;
  /** Planner variables that are set, NAME=value. */
  readonly variables: readonly string[];
  readonly nodes: number;
  readonly ranks: number;
  /** After doubling, what the engine's rings and trees have. */
  readonly nChannels: number;
  readonly ring: GraphView;
  readonly tree: GraphView;
  readonly collnet: GraphView | null;
  /** Direct inside hosts, with rings or trees between the ranks of one local index; null: one host, or hosts with different numbers of ranks. */
  readonly hierarchical: HierarchyView | null;
  /** Each kind of host by itself; the graphs above are what all of them can do, with the orders of the first. */
  readonly shapes: readonly ShapeView[];
  /** Bytes of each GPU that a communicator of all ranks takes, one of a program's first ones; null: not on GPUs. */
  readonly memory: PlannedGpuMemory | null;
  readonly tuning: readonly TuningView[];
  /** By which algorithm all-reduces go whose type and operator the network reduces, before those of `tuning`; null: by none (NCCL_COLLNET_ENABLE). */
  readonly reducedByNetwork: CollnetName | null;
  /** The file with the times that were measured; null: all are predicted. */
  readonly table: string | null;
  readonly rings?: readonly (readonly number[])[];
}

interface ViewOptions {
  readonly collectives: readonly CollectiveName[];
  readonly sizes: readonly number[];
  /** With the orders over all ranks. */
  readonly full: boolean;
  readonly preferences: Preferences;
  /** What the model is asked about, as for a communicator of all ranks. */
  readonly situation: Situation;
  /** Of the machine that is planned for. */
  readonly table: FoundTable | null;
  /** Variables that decided something. */
  readonly settings: readonly string[];
  readonly memory: PlannedGpuMemory | null;
  /** Of the machine that is planned for, where it is this one. */
  readonly gids: PortGids;
}

export function viewOf(cluster: Cluster, options: ViewOptions): PlanView {
  const { collectives, full, situation } = options;
  const acrossHosts = cluster.hosts.length > 1;
  const shapes = cluster.shapes.map((shape, index): ShapeView => {
    const { routes } = shape;
    const { machine } = routes;
    const own = (graph: Graph | null): GraphView | null =>
      graph === null ? null : graphView(graph, routes, acrossHosts);
    return {
      hosts: cluster.hosts.filter((host) => host.shape === index).length,
      gpus: machine.gpus.length,
      nics: machine.nets.length,
      nicTable: nicViews(routes, options.gids),
      ringNics: channelNics(shape.ring, routes),
      ring: graphView(shape.ring, routes, acrossHosts),
      tree: graphView(shape.tree, routes, acrossHosts),
      collnet: own(shape.collnetChain),
      collnetDirect: own(shape.collnetDirect),
    };
  });
  const [first] = shapes;
  if (first === undefined) throw new RangeError('a plan needs a host');
  const weakest = (name: 'ring' | 'tree' | 'collnet'): GraphView | undefined => {
    const graphs = shapes.flatMap((shape) => shape[name] ?? []);
    return graphs.toSorted((one, other) => one.totalBw - other.totalBw)[0];
  };
  return {
    version: 1,
    variables: options.settings,
    nodes: cluster.hosts.length,
    ranks: cluster.ranks,
    nChannels: cluster.channels,
    ring: agreed(first.ring, weakest('ring'), cluster.ring, acrossHosts),
    tree: agreed(first.tree, weakest('tree'), cluster.tree, acrossHosts),
    collnet:
      first.collnet === null || situation.collnet === null
        ? null
        : agreed(first.collnet, weakest('collnet'), situation.collnet, acrossHosts),
    hierarchical: hierarchyView(cluster),
    shapes,
    memory: options.memory,
    table: options.table?.file ?? null,
    reducedByNetwork: collnetFormFor(situation, options.preferences),
    tuning: collectives.flatMap((collective) => tuningOf(collective, situation, options)),
    ...(full ? { rings: ringOrders(cluster) } : {}),
  };
}

function hierarchyView(cluster: Cluster): HierarchyView | null {
  const hierarchy = Hierarchy.of(cluster);
  if (hierarchy === null) return null;
  const { rails, bandwidth, type } = hierarchy;
  const nets = cluster.shapes[cluster.hosts[0]?.shape ?? 0]?.routes.machine.nets ?? [];
  return {
    rails,
    bwInter: bandwidth / 1000,
    totalBw: (rails * bandwidth) / 1000,
    typeInter: type,
    nics: hierarchy.ends(0).map(({ nic }) => nets[nic]?.device ?? -1),
  };
}

function ringOrders(cluster: Cluster): number[][] {
  return Array.from({ length: cluster.channels }, (_, channel) => cluster.ringOrder(channel));
}

function graphView(graph: Graph, routes: MachineRoutes, acrossHosts: boolean): GraphView {
  return {
    pattern: graph.pattern,
    ...termsView(ownAgreement(graph), acrossHosts),
    bottleneck: bottleneckOf(graph, routes),
    channels: graph.channels.map((channel) => channelView(channel, routes.machine)),
  };
}

function termsView(agreement: Agreement, acrossHosts: boolean): Omit<GraphView, 'pattern' | 'bottleneck' | 'channels'> {
  const { channels, inside, between, typeInside, typeBetween, crossNic, sameChannels } = agreement;
  return {
    nChannels: channels,
    bwIntra: inside / 1000,
    bwInter: between / 1000,
    typeIntra: typeInside,
    typeInter: typeBetween,
    crossNic,
    sameChannels: sameChannels ? 1 : 0,
    totalBw: totalBandwidth(channels, agreement, acrossHosts) / 1000,
  };
}

function bottleneckOf(graph: Graph, routes: MachineRoutes): BottleneckView | null {
  const loads = linkLoads(routes, graph);
  const [fullest] = loads;
  if (fullest === undefined) return null;
  const { link, load } = fullest;
  const asFull = loads.filter((other) => shareOf(fullest) - shareOf(other) < 1e-3);
  return {
    from: link.from.name,
    to: link.to.name,
    bandwidth: link.bandwidth / 1000,
    load: Math.round(load) / 1000,
    others: asFull.length - 1,
  };
}

function channelView({ order, nets }: FoundChannel, machine: Machine): ChannelView {
  return {
    order: order.map((gpu) => machine.gpus[gpu]?.rank ?? -1),
    nics: (nets ?? []).map((net) => machine.nets[net]?.device ?? -1),
  };
}

/** What all hosts can do, with the first's orders and the weakest's bottleneck. */
function agreed(
  view: GraphView,
  weakest: GraphView | undefined,
  agreement: Agreement,
  acrossHosts: boolean,
): GraphView {
  return {
    pattern: view.pattern,
    ...termsView(agreement, acrossHosts),
    bottleneck: weakest?.bottleneck ?? null,
    channels: view.channels.slice(0, agreement.channels),
  };
}

function tuningOf(
  collective: CollectiveName,
  situation: Situation,
  { sizes, preferences, table }: ViewOptions,
): TuningView[] {
  const measured = (table?.table.collectives.find((one) => one.collective === collective)?.variants ?? []).filter(
    (variant) => isPreferred(collective, variant, preferences),
  );
  const measuredTime = (choice: Choice, bytes: number): number | null => {
    const time = fastestAt(measured, choice, bytes);
    return time === null ? null : rounded(time);
  };
  const all = choicesFor(collective, situation);
  const choices = preferredChoices(collective, all, preferences, situation);
  return sizes.flatMap((bytes) => {
    const predicted = bestOf(collective, choices, bytes);
    if (predicted === null) return [];
    const known = measuredAt(measured, bytes, (variant, size) => {
      const planned = bestOf(collective, choices, size);
      return variant.algorithm === planned?.algorithm && variant.protocol === planned.protocol;
    });
    const own = choices.find(
      ({ algorithm, protocol }) => algorithm === known?.variant.algorithm && protocol === known.variant.protocol,
    );
    const best = own ?? predicted;
    const microseconds = own === undefined || known === null ? timeOf(best, bytes) : known.microseconds;
    const others = all
      .filter((choice) => !isSame(choice, best))
      .toSorted((one, other) => timeOf(one, bytes) - timeOf(other, bytes));
    const busBytes = bytes * busFactor(collective, situation.ranks);
    return [
      {
        collective,
        bytes,
        algorithm: best.algorithm,
        protocol: best.protocol,
        predictedMicroseconds: rounded(timeOf(best, bytes)),
        measuredMicroseconds: measuredTime(best, bytes),
        predictedBusBw: Number((busBytes / microseconds / 1000).toPrecision(4)),
        others: others.map((choice) => ({
          algorithm: choice.algorithm,
          protocol: choice.protocol,
          predictedMicroseconds: rounded(timeOf(choice, bytes)),
          measuredMicroseconds: measuredTime(choice, bytes),
          isPossible: choices.some((one) => isSame(one, choice)),
        })),
      },
    ];
  });
}

function isSame(one: Choice, other: Choice): boolean {
  return one.algorithm === other.algorithm && one.protocol === other.protocol;
}

/** To four digits. */
function rounded(microseconds: number): number {
  return Number(microseconds.toPrecision(4));
}

/** nccl-tests, doc/PERFORMANCE.md. */
function busFactor(collective: CollectiveName, ranks: number): number {
  switch (collective) {
    case 'allReduce':
      return (2 * (ranks - 1)) / ranks;
    case 'allGather':
    case 'reduceScatter':
    case 'allToAll':
    case 'gather':
    case 'scatter':
      return (ranks - 1) / ranks;
    default:
      return 1;
  }
}
