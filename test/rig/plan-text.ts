/** What the planner decides about a machine or a job, as lines of text that a test compares with recorded ones. */
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { CommPlan, TuningRow, Variant } from '../../control/plan/types.ts';
import type { Cluster, Neighbour } from '../../control/planner/cluster/cluster.ts';
import type { HostShape } from '../../control/planner/cluster/host-shape.ts';
import { Collnet } from '../../control/planner/cluster/collnet.ts';
import { Hierarchy } from '../../control/planner/cluster/hierarchy.ts';
import { pointToPoint } from '../../control/planner/cluster/point-to-point.ts';
import type { MachineNode } from '../../control/planner/machine/node.ts';
import type { MachineRoutes } from '../../control/planner/machine/routes.ts';
import type { FoundChannel, Graph } from '../../control/planner/search/graph.ts';
import { choicesFor } from '../../control/planner/tuning/choices.ts';
import type { Prediction, Situation } from '../../control/planner/tuning/situation.ts';
import { linkLoads, shareOf } from '../../control/planner/verify/link-loads.ts';

/** Six digits: results of functions such as log2 may differ in the last ones. */
export function figure(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

/** Equal neighbours once, with their number. */
function runs(items: readonly string[]): string {
  const found: { text: string; count: number }[] = [];
  for (const text of items) {
    const last = found.at(-1);
    if (last?.text === text) last.count += 1;
    else found.push({ text, count: 1 });
  }
  return found.map(({ text, count }) => (count === 1 ? text : `${text}*${count}`)).join(' ');
}

/** Type, bandwidth and links of all paths from GPUs, and to them from NICs; how processors and nets look. */
export function routesText(routes: MachineRoutes): string[] {
  const { gpus, nets, cpus } = routes.machine;
  const table = (from: MachineNode, targets: readonly MachineNode[]): string =>
    runs(
      targets.map((to) => {
        const { type, bandwidth, links } = routes.path(from, to);
        return `${type}:${figure(bandwidth)}:${links.length}`;
      }),
    );
  return [
    ...gpus.map((gpu) => `gpu ${gpu.name}: ${[gpus, nets, cpus].map((targets) => table(gpu, targets)).join(' | ')}`),
    ...nets.map((net) => `net ${net.name} ${figure(net.bandwidth)} ${figure(net.latency)}: ${table(net, gpus)}`),
    ...cpus.map((cpu) => `cpu ${cpu.numa} ${cpu.architecture} ${cpu.vendor} ${cpu.socketBandwidth}`),
  ];
}

export function channelText({ order, nets }: FoundChannel): string {
  return nets === null ? order.join('-') : `${nets[0]}>${order.join('-')}>${nets[1]}`;
}

export function graphText(graph: Graph | null): string {
  if (graph === null) return 'none';
  const { pattern, channels, inside, between, typeInside, typeBetween, sameChannels, crossNic, latencyBetween } = graph;
  const terms = `${figure(inside)}/${figure(between)} ${typeInside}/${typeBetween} ${sameChannels ? 'same' : 'own'} cross${crossNic}`;
  return `${pattern} ${channels.length} of ${terms} +${figure(latencyBetween)}: ${runs(channels.map(channelText))}`;
}

/** Its graphs, and the fullest links of each. */
export function shapeText({ routes, ring, tree, collnetChain, collnetDirect }: HostShape): string[] {
  const graphs = { ring, tree, chain: collnetChain, direct: collnetDirect };
  return Object.entries(graphs).flatMap(([name, graph]) => {
    const loads = graph === null ? [] : linkLoads(routes, graph).map((load) => figure(shareOf(load)));
    return [`${name} = ${graphText(graph)}`, ...(graph === null ? [] : [`  loads ${runs(loads)}`])];
  });
}

function neighbourText(neighbour: Neighbour | null): string {
  if (neighbour === null) return '.';
  const { rank, ownNic, otherNic } = neighbour;
  return ownNic === -1 && otherNic === -1 ? String(rank) : `${rank}(${ownNic},${otherNic})`;
}

/** Neighbours of all ranks in all channels, and channels of messages. */
export function clusterText(cluster: Cluster): string[] {
  const ranks = Array.from({ length: cluster.ranks }, (_, rank) => rank);
  const messages = pointToPoint(cluster);
  return [
    `channels ${cluster.channels}, of messages ${messages.channels}, of a peer ${messages.perPeer}`,
    ...Array.from({ length: cluster.channels }, (_, channel) => {
      const rings = ranks.map((rank) => neighbourText(cluster.ringNeighbours(rank, channel).next));
      const trees = ranks.map((rank) => neighbourText(cluster.treeNeighbours(rank, channel).parent));
      return `${channel}: ${rings.join(' ')} | ${trees.join(' ')}`;
    }),
    ...collnetText(cluster),
    ...hierarchyText(cluster),
  ];
}

function collnetText(cluster: Cluster): string[] {
  const collnet = Collnet.of(cluster);
  if (collnet === null) return [];
  return Array.from({ length: collnet.channels }, (_, channel) => {
    const all = Array.from({ length: cluster.ranks }, (__, rank) => {
      const { direction, up, down, depth, receiveMaster, sendMaster, nic } = collnet.positionOf(rank, channel);
      return `${up}/${down}/${direction}${depth}/${receiveMaster}/${sendMaster}/${nic}`;
    });
    return `collnet ${channel}: ${all.join(' ')}`;
  });
}

function hierarchyText(cluster: Cluster): string[] {
  const hierarchy = Hierarchy.of(cluster);
  if (hierarchy === null) return [];
  const all = Array.from({ length: cluster.ranks }, (_, rank) => {
    const ring = neighbourText(hierarchy.ringNeighbours(rank).next);
    const trees = ([0, 1] as const).map((which) => neighbourText(hierarchy.treeNeighbours(rank, which).parent));
    return `${hierarchy.railOf(rank)}/${ring}/${trees.join('/')}`;
  });
  return [`rails ${hierarchy.rails} ${hierarchy.bandwidth} ${hierarchy.type}: ${all.join(' ')}`];
}

function predictionText({ microseconds, bytesPerMicrosecond, fill }: Prediction): string {
  const filled = fill === null ? '' : `+${figure(fill.microseconds)}/${figure(fill.bytes)}`;
  return `${figure(microseconds)}@${figure(bytesPerMicrosecond)}${filled}`;
}

/** Predictions of all variants. */
export function situationText(situation: Situation): string[] {
  return COLLECTIVES.map((collective) => {
    const all = choicesFor(collective, situation).map(
      ({ algorithm, protocol, prediction }) => `${algorithm}.${protocol} ${predictionText(prediction)}`,
    );
    return `${collective}: ${all.join(', ')}`;
  });
}

function variantText(variant: Variant): string {
  const { algorithm, protocol, channels, chunkBytes, threads, requires, asMessages } = variant;
  const times = `${figure(variant.predictedMicroseconds)}+${figure(variant.predictedMicrosecondsPerMebibyte)}`;
  const marks = [...requires, ...(asMessages ? ['messages'] : [])].map((mark) => ` ${mark}`).join('');
  return `${algorithm}.${protocol} ${channels}x${threads} ${chunkBytes} ${times}${marks}`;
}

function rowText({ upToBytes, variants }: TuningRow): string {
  return `  ${upToBytes ?? 'more'}: ${variants.map(variantText).join(' / ')}`;
}

/** All that is decided for a job. */
export function planText(plan: CommPlan): string[] {
  const { tuning, channels, peers, hosts, token: _, ...rest } = plan;
  const lines: string[] = [];
  for (const collective of COLLECTIVES) {
    const rows = tuning.filter((row) => row.collective === collective);
    if (rows.length > 0) lines.push(collective, ...rows.map(rowText));
  }
  return [
    JSON.stringify(rest),
    `hosts ${hosts.map(({ name, nics }) => `${name}:${nics.map((nic) => nic.name).join('+')}`).join(' ')}`,
    `peers ${runs(peers.map(({ host, pairNic }) => `${host}:${pairNic}`))}`,
    `channels ${runs(channels.map(({ ring, tree, rail }) => `${ring.join('-')}/${tree.join('-')}/${rail}`))}`,
    ...lines,
  ];
}
