/** From a topology's elements to the graph of a machine. */
import * as attribute from '../../topology/attribute.ts';
import { elementsOf, everyElement, locationOf, TopologyError } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import { checkLimits } from '../../topology/limits.ts';
import {
  laneBandwidth,
  LOCAL_BANDWIDTH,
  socketBandwidth,
  UNKNOWN_NET_MEGABITS,
  UNKNOWN_SOCKET_BANDWIDTH,
  UNKNOWN_WIDTH,
} from './constants.ts';
import type { Architecture, Vendor } from './constants.ts';
import { Draft } from './draft.ts';
import type { DraftNode } from './draft.ts';
import { connectGpus } from './fabric.ts';
import { flattenSwitches } from './flatten.ts';
import type { Machine } from './node.ts';

/** What is found again while links are added: the nodes of PCI addresses and of <gpu> elements, and the processor above each. */
export interface Builder {
  readonly draft: Draft;
  readonly byBusId: Map<number, DraftNode[]>;
  readonly gpuOf: Map<Element, DraftNode>;
  readonly cpuOf: Map<DraftNode, DraftNode>;
}

/** Throws a TopologyError for what is missing or means nothing. */
export function buildMachine(system: Element): Machine {
  if (system.name !== 'system') {
    throw new TopologyError(`${locationOf(system)}: a topology begins with <system>`);
  }
  checkLimits(system);
  const builder: Builder = { draft: new Draft(), byBusId: new Map(), gpuOf: new Map(), cpuOf: new Map() };
  for (const cpu of elementsOf(system, 'cpu')) addCpu(builder, cpu);
  connectGpus(builder, system);
  connectSwitches(builder, system);
  flattenSwitches(builder.draft);
  connectCpus(builder.draft);
  return builder.draft.finish();
}

const VENDORS = new Map<string, Vendor>([
  ['GenuineIntel', 'intel'],
  ['AuthenticAMD', 'amd'],
  ['CentaurHauls', 'zhaoxin'],
  ['  Shanghai  ', 'zhaoxin'],
]);

function addCpu(builder: Builder, from: Element): void {
  const numa = attribute.whole(from, 'numaid');
  const architecture = architectureOf(from);
  const vendor: Vendor =
    architecture === 'x86_64' ? (VENDORS.get(attribute.textAttribute(from, 'vendor', '')) ?? 'unknown') : 'unknown';
  const family = attribute.whole(from, 'familyid', 0);
  const model = attribute.whole(from, 'modelid', 0);
  const bandwidth = from.attributes.has('arch')
    ? socketBandwidth(architecture, vendor, family, model)
    : UNKNOWN_SOCKET_BANDWIDTH;
  const name = `NUMA node ${numa}`;
  const cpu = builder.draft.add({ kind: 'cpu', name, numa, architecture, vendor, socketBandwidth: bandwidth });
  for (const child of elementsOf(from)) {
    if (child.name === 'pci') addPci(builder, child, cpu, cpu);
    if (child.name === 'nic') addNic(builder, child, cpu, LOCAL_BANDWIDTH, name);
  }
}

function architectureOf(from: Element): Architecture {
  const name = attribute.textAttribute(from, 'arch', '');
  return name === 'x86_64' || name === 'arm64' || name === 'ppc64' ? name : 'unknown';
}

function addPci(builder: Builder, from: Element, parent: DraftNode, cpu: DraftNode): void {
  const { draft } = builder;
  const address = attribute.textAttribute(from, 'busid');
  const width = attribute.lanes(from);
  const bandwidth =
    laneBandwidth(attribute.textAttribute(from, 'link_speed', '')) * (width === 0 ? UNKNOWN_WIDTH : width);
  const gpus = elementsOf(from, 'gpu');
  if (gpus.length > 0) {
    // The parts of one GPU share its link.
    const used = gpus.filter(({ attributes }) => attributes.has('rank'));
    for (const gpu of used) addGpu(builder, gpu, from, { parent, cpu, bandwidth: Math.floor(bandwidth / used.length) });
    return;
  }
  const [nic] = elementsOf(from, 'nic');
  if (nic !== undefined) {
    addNic(builder, nic, parent, bandwidth, address);
    return;
  }
  if (!isBridge(attribute.textAttribute(from, 'class', ''))) return;
  const node = draft.add({ kind: 'pci', name: address, model: modelOf(from) });
  remember(builder, from, node, cpu);
  for (const child of elementsOf(from, 'pci')) addPci(builder, child, node, cpu);
  draft.join(node, parent, 'pci', bandwidth);
}

interface Attachment {
  readonly parent: DraftNode;
  readonly cpu: DraftNode;
  /** MB/s, of the link to the parent. */
  readonly bandwidth: number;
}

function addGpu(builder: Builder, gpu: Element, pci: Element, { parent, cpu, bandwidth }: Attachment): void {
  const { draft, gpuOf } = builder;
  // What providers ship for NCCL to fill in has GPUs without numbers.
  const device = attribute.whole(gpu, 'dev', gpuOf.size);
  const part = gpu.attributes.has('mlopart') ? attribute.whole(gpu, 'mlopart') : null;
  const isAlone = elementsOf(pci, 'gpu').every(
    (other) => other === gpu || attribute.whole(other, 'dev', -1) !== device,
  );
  const node = draft.add({
    kind: 'gpu',
    name: isAlone || part === null ? `GPU ${device}` : `GPU ${device} part ${part}`,
    device,
    part,
    rank: attribute.whole(gpu, 'rank'),
    computeCapability: attribute.whole(gpu, 'sm', 0),
    gpuDirect: attribute.whole(gpu, 'gdr', 0) !== 0,
  });
  gpuOf.set(gpu, node);
  remember(builder, pci, node, cpu);
  draft.join(node, parent, 'pci', bandwidth);
}

function remember({ byBusId, cpuOf }: Builder, pci: Element, node: DraftNode, cpu: DraftNode): void {
  const address = attribute.busId(pci);
  const others = byBusId.get(address) ?? [];
  const areGpus = [...others, node].every(({ facts }) => facts.kind === 'gpu');
  if (others.length > 0 && !areGpus)
    throw new TopologyError(`${locationOf(pci)}: busid="${attribute.textAttribute(pci, 'busid')}" is there twice`);
  byBusId.set(address, [...others, node]);
  cpuOf.set(node, cpu);
}

/** What is neither a display nor a network device, nor an NVSwitch, stands for a switch. */
function isBridge(deviceClass: string): boolean {
  return !/^0x(?:02|03|068000|068001)/iu.test(deviceClass);
}

function modelOf(from: Element): string {
  const ids = ['vendor', 'device', 'subsystem_vendor', 'subsystem_device'];
  return ids.map((id) => attribute.whole(from, id, 0).toString(16).padStart(4, '0')).join('');
}

/** Without a net that ranks could use it is left out. */
function addNic({ draft }: Builder, from: Element, parent: DraftNode, bandwidth: number, name: string): void {
  const nets = elementsOf(from, 'net').filter(
    (net) => net.attributes.has('dev') && attribute.whole(net, 'net', 1) !== 0,
  );
  if (nets.length === 0) return;
  const nic = draft.add({ kind: 'nic', name: `NIC at ${name}` });
  for (const net of nets) {
    const device = attribute.whole(net, 'dev');
    const megabits = attribute.whole(net, 'speed', 0);
    const speed = (megabits <= 0 ? UNKNOWN_NET_MEGABITS : megabits) / 8;
    const asic = net.attributes.get('guid') ?? `device ${device}`;
    const node = draft.add({
      kind: 'net',
      name: attribute.textAttribute(net, 'name', `net ${device}`),
      device,
      port: `${asic}/${attribute.whole(net, 'port', 0)}`,
      bandwidth: speed,
      latency: attribute.decimal(net, 'latency', 0),
      gpuDirect: attribute.whole(net, 'gdr', 0) !== 0,
      collnet: attribute.whole(net, 'coll', 0) !== 0,
    });
    draft.join(nic, node, 'net', speed);
  }
  draft.join(nic, parent, 'pci', bandwidth);
}

/** `<pcilink>`: ports of one switch that shows as several. */
function connectSwitches({ draft, byBusId }: Builder, system: Element): void {
  for (const pci of everyElement(system)) {
    for (const link of elementsOf(pci, 'pcilink')) {
      const [from] = byBusId.get(attribute.busId(pci)) ?? [];
      const [to] = byBusId.get(attribute.busId(link, 'target')) ?? [];
      if (from === undefined) throw new TopologyError(`${locationOf(link)}: stands in no PCI switch`);
      if (to !== undefined) draft.connect(from, to, 'local', LOCAL_BANDWIDTH);
    }
  }
}

function connectCpus(draft: Draft): void {
  const cpus = draft.nodes.filter(({ facts }) => facts.kind === 'cpu');
  for (const one of cpus) {
    for (const other of cpus) {
      if (one !== other && one.facts.kind === 'cpu') draft.connect(one, other, 'socket', one.facts.socketBandwidth);
    }
  }
}
