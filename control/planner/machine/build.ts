/** From a topology's elements to the graph of a machine. */
import * as attribute from '../../topology/attribute.ts';
import { elementsOf, everyElement, placeOf, TopologyError } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import { checkLimits } from '../../topology/limits.ts';
import { LOCAL_BANDWIDTH, laneBandwidth, socketBandwidth, UNKNOWN_NET_MEGABITS, UNKNOWN_WIDTH } from './constants.ts';
import type { Architecture, Vendor } from './constants.ts';
import { Draft } from './draft.ts';
import type { DraftNode } from './draft.ts';
import { connectGpus } from './fabric.ts';
import { flattenSwitches } from './flatten.ts';
import type { Machine } from './node.ts';

/** What is found again while links are added: the nodes of PCI addresses, and the processor above each. */
export interface Builder {
  readonly draft: Draft;
  readonly byBusId: Map<number, DraftNode>;
  readonly cpuOf: Map<DraftNode, DraftNode>;
}

/** Throws a TopologyError for what is missing or means nothing. */
export function buildMachine(system: Element): Machine {
  if (system.name !== 'system') {
    throw new TopologyError(`${placeOf(system)}: a topology begins with <system>`);
  }
  checkLimits(system);
  const builder: Builder = { draft: new Draft(), byBusId: new Map(), cpuOf: new Map() };
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

function addCpu({ draft, byBusId, cpuOf }: Builder, from: Element): void {
  const numa = attribute.whole(from, 'numaid');
  const architecture = architectureOf(from);
  const vendor: Vendor =
    architecture === 'x86_64' ? (VENDORS.get(attribute.text(from, 'vendor')) ?? 'unknown') : 'unknown';
  const family = vendor === 'unknown' ? 0 : attribute.whole(from, 'familyid');
  const model = vendor === 'unknown' ? 0 : attribute.whole(from, 'modelid', 0);
  const bandwidth = socketBandwidth(architecture, vendor, family, model);
  const name = `NUMA node ${numa}`;
  const cpu = draft.add({ kind: 'cpu', name, numa, architecture, vendor, socketBandwidth: bandwidth });
  const builder = { draft, byBusId, cpuOf };
  for (const child of elementsOf(from)) {
    if (child.name === 'pci') addPci(builder, child, cpu, cpu);
    if (child.name === 'nic') addNic(builder, child, cpu, LOCAL_BANDWIDTH, name);
  }
}

function architectureOf(from: Element): Architecture {
  const name = attribute.text(from, 'arch');
  return name === 'x86_64' || name === 'arm64' || name === 'ppc64' ? name : 'unknown';
}

function addPci(builder: Builder, from: Element, parent: DraftNode, cpu: DraftNode): void {
  const { draft, byBusId, cpuOf } = builder;
  const address = attribute.text(from, 'busid');
  const id = attribute.busId(from);
  const width = attribute.lanes(from);
  const bandwidth = laneBandwidth(attribute.text(from, 'link_speed', '')) * (width === 0 ? UNKNOWN_WIDTH : width);
  const [gpu] = elementsOf(from, 'gpu');
  if (gpu !== undefined) {
    if (!gpu.attributes.has('rank')) return; // no rank of ours uses it
    const device = attribute.whole(gpu, 'dev');
    const node = draft.add({
      kind: 'gpu',
      name: `GPU ${device}`,
      device,
      rank: attribute.whole(gpu, 'rank'),
      computeCapability: attribute.whole(gpu, 'sm'),
      gpuDirect: attribute.whole(gpu, 'gdr', 0) !== 0,
    });
    remember(node);
    draft.join(node, parent, 'pci', bandwidth);
    return;
  }
  const [nic] = elementsOf(from, 'nic');
  if (nic !== undefined) {
    addNic(builder, nic, parent, bandwidth, address);
    return;
  }
  if (!isBridge(attribute.text(from, 'class', ''))) return;
  const node = draft.add({ kind: 'pci', name: address, model: modelOf(from) });
  remember(node);
  for (const child of elementsOf(from, 'pci')) addPci(builder, child, node, cpu);
  draft.join(node, parent, 'pci', bandwidth);

  function remember(added: DraftNode): void {
    if (byBusId.has(id)) {
      throw new TopologyError(`${placeOf(from)}: busid="${address}" is there twice`);
    }
    byBusId.set(id, added);
    cpuOf.set(added, cpu);
  }
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
      name: attribute.text(net, 'name', `net ${device}`),
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
      const from = byBusId.get(attribute.busId(pci));
      const to = byBusId.get(attribute.busId(link, 'target'));
      if (from === undefined) throw new TopologyError(`${placeOf(link)}: stands in no PCI switch`);
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
