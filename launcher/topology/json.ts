/** A machine for programs; docs/topology.md describes the fields. */
import { elementsOf } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import type { MachineNode } from '../../control/planner/machine/node.ts';
import { socketRate } from './cpu-text.ts';
import type { CpuPart, GpuPart, NetPart, Nvlinks, PciLink } from './part.ts';
import type { Survey } from './survey.ts';
import type { NetworkPlugin } from './network-plugin.ts';
import type { VerbsPortView } from './verbs.ts';

/** Counts up when a field changes its meaning or goes. */
const SCHEMA_VERSION = 1;

export function jsonOf(
  survey: Survey,
  verbs: readonly VerbsPortView[] = [],
  networkPlugin: NetworkPlugin | null = null,
): string {
  const { title, system, cpus, gpus, nets, notes } = survey;
  const document = {
    schemaVersion: SCHEMA_VERSION,
    source: title,
    system: tree(system),
    cpus: cpus.map(cpuObject),
    gpus: gpus.map((gpu) => gpuObject(gpu, survey)),
    nets: nets.map((net) => netObject(net, survey)),
    verbs,
    networkPlugin,
    paths: pathObjects(survey),
    notes,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

interface Tree {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Tree[];
}

function tree(element: Element): Tree {
  const { name, attributes } = element;
  return { name, attributes: Object.fromEntries(attributes), children: elementsOf(element).map(tree) };
}

function cpuObject({ element: { attributes }, node }: CpuPart) {
  const socket = socketRate(node);
  return {
    numa: node.numa,
    arch: attributes.get('arch') ?? null,
    vendor: attributes.get('vendor') ?? null,
    affinity: attributes.get('affinity') ?? null,
    socketBandwidth: socket === null ? null : gigabytes(socket),
  };
}

function gpuObject({ index, busId, link, rank, cpu, node, nvlinks, c2c }: GpuPart, { cpus }: Survey) {
  return {
    index,
    busId,
    rank,
    numa: cpus[cpu]?.node.numa ?? null,
    computeCapability: node.computeCapability === 0 ? null : node.computeCapability,
    part: node.part,
    gpuDirect: node.gpuDirect,
    pci: pciObject(link),
    nvlinks: nvlinks.map(nvlinkObject),
    c2cBandwidth: c2c === null ? null : gigabytes(c2c),
  };
}

function nvlinkObject({ to, busId, count, bandwidth }: Nvlinks) {
  const gpu = to.type === 'gpu' ? to.index : null;
  return { to: to.type, gpu, busId, count, bandwidth: gigabytes(bandwidth) };
}

function netObject({ index, name, megabits, element, cpu, busId, link, node }: NetPart, { cpus }: Survey) {
  return {
    index,
    name,
    busId,
    numa: cpus[cpu]?.node.numa ?? null,
    megabitsPerSecond: megabits,
    bandwidth: gigabytes(node.bandwidth),
    latencyMicroseconds: node.latency,
    port: Number(element.attributes.get('port') ?? 0),
    guid: element.attributes.get('guid') ?? null,
    gpuDirect: node.gpuDirect,
    collnet: node.collnet,
    pci: link === null ? null : pciObject(link),
  };
}

function pciObject({ generation, width, bandwidth }: PciLink) {
  return { generation, width, bandwidth: gigabytes(bandwidth) };
}

/** Between GPUs, from them to NICs and back. */
function pathObjects({ gpus, nets, routes }: Survey) {
  const described = (from: MachineNode, to: MachineNode) => {
    const { type, bandwidth, links } = routes.path(from, to);
    return { type, bandwidth: gigabytes(bandwidth), through: links.slice(0, -1).map((link) => link.to.name) };
  };
  return [
    ...gpus.flatMap((from) =>
      gpus
        .filter((to) => to !== from)
        .map((to) => ({ from: gpuEnd(from), to: gpuEnd(to), ...described(from.node, to.node) })),
    ),
    ...gpus.flatMap((gpu) =>
      nets.flatMap((net) => [
        {
          from: gpuEnd(gpu),
          to: netEnd(net),
          ...described(gpu.node, net.node),
          gpuDirect: routes.usesGpuDirect(gpu.node, net.node, true),
        },
        {
          from: netEnd(net),
          to: gpuEnd(gpu),
          ...described(net.node, gpu.node),
          gpuDirect: routes.usesGpuDirect(gpu.node, net.node, false),
        },
      ]),
    ),
  ];
}

function gpuEnd({ index }: GpuPart) {
  return { kind: 'gpu', index };
}

function netEnd({ index }: NetPart) {
  return { kind: 'net', index };
}

/** MB/s → GB/s. */
function gigabytes(megabytes: number): number {
  return Number((megabytes / 1000).toFixed(3));
}
