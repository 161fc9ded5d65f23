/** From elements to parts. */
import * as attribute from '../../control/topology/attribute.ts';
import { elementsOf, everyElement, locationOf, TopologyError } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { nvlinkTarget } from '../../control/topology/nvlink-target.ts';
import { nvlinkBandwidth } from '../../control/planner/machine/constants.ts';
import type { GpuNode, Machine, NetNode } from '../../control/planner/machine/node.ts';
import { cpuModel, cpuName } from './cpu-text.ts';
import type { CpuPart, DevicePart, GpuPart, NetPart, NicPart, NvlinkEnd, Nvlinks, TopologyPart } from './part.ts';
import { pciLink } from './pci-link.ts';

/** Goes through the tree as buildMachine does: the machine's GPUs and nets come in the same order. */
export class PartReader {
  readonly gpus: GpuPart[] = [];
  readonly nets: NetPart[] = [];
  readonly #machine: Machine;
  readonly #gpusAt = new Map<number, number[]>();
  readonly #unused: ReadonlySet<Element>;
  #netsSeen = 0;

  constructor(machine: Machine, system: Element, unused: ReadonlySet<Element>) {
    this.#machine = machine;
    this.#unused = unused;
    for (const pci of everyElement(system)) {
      if (pci.name !== 'pci') continue;
      const gpus = elementsOf(pci, 'gpu').map((gpu) => attribute.whole(gpu, 'dev'));
      if (gpus.length === 0) continue;
      const address = attribute.busId(pci);
      this.#gpusAt.set(address, [...(this.#gpusAt.get(address) ?? []), ...gpus]);
    }
  }

  cpu(element: Element, index: number): CpuPart {
    const node = this.#machine.cpus[index];
    if (node === undefined) throw new TopologyError(`${locationOf(element)}: is no processor`);
    const parts = elementsOf(element).flatMap((child): TopologyPart[] => {
      if (child.name === 'pci') return this.#pci(child, index);
      return child.name === 'nic' ? this.#nic(child, index, null) : [];
    });
    return { kind: 'cpu', element, node, name: cpuName(node), model: cpuModel(element), parts };
  }

  /** One part for each GPU at the address, else one. */
  #pci(element: Element, cpu: number): TopologyPart[] {
    const link = pciLink(element);
    const busId = attribute.textAttribute(element, 'busid');
    const deviceClass = attribute.deviceClass(element);
    const gpus = elementsOf(element, 'gpu');
    if (gpus.length > 0) return gpus.map((gpu) => this.#gpu(gpu, element, cpu));
    const [nic] = elementsOf(element, 'nic');
    const what = deviceKind(deviceClass);
    const device: DevicePart = { kind: 'device', what: nic === undefined ? what : 'NIC', busId, link };
    if (nic !== undefined) return [this.#nic(nic, cpu, element)[0] ?? device];
    const below = elementsOf(element, 'pci');
    // In files that providers ship, what has no class and nothing below it is a device that the host describes.
    if (deviceClass === '' && below.length === 0) return [device];
    if (what !== 'device' || /^0x0680/iu.test(deviceClass)) return [device];
    return [{ kind: 'switch', busId, link, parts: below.flatMap((child) => this.#pci(child, cpu)) }];
  }

  #gpu(element: Element, pci: Element, cpu: number): GpuPart {
    const node = this.#nextGpu(element);
    const c2c = elementsOf(element, 'c2c').map((link) => attribute.whole(link, 'count') * attribute.whole(link, 'bw'));
    const part: GpuPart = {
      kind: 'gpu',
      index: node.device,
      busId: attribute.textAttribute(pci, 'busid'),
      link: pciLink(pci),
      element,
      rank: this.#unused.has(element) ? null : node.rank,
      cpu,
      node,
      nvlinks: elementsOf(element, 'nvlink').map((link) => this.#nvlinks(link, node)),
      c2c: c2c.length === 0 ? null : c2c.reduce((sum, one) => sum + one, 0),
    };
    this.gpus.push(part);
    return part;
  }

  #nextGpu(element: Element): GpuNode {
    const node = this.#machine.gpus[this.gpus.length];
    if (node === undefined) throw new TopologyError(`${locationOf(element)}: stands under no <pci> of a processor`);
    return node;
  }

  #nvlinks(element: Element, { computeCapability }: GpuNode): Nvlinks {
    const count = attribute.whole(element, 'count');
    const busId = attribute.textAttribute(element, 'target', '');
    return { to: this.#nvlinkEnd(element), busId, count, bandwidth: count * nvlinkBandwidth(computeCapability) };
  }

  #nvlinkEnd(element: Element): NvlinkEnd {
    const target = nvlinkTarget(element, (address) => this.#gpusAt.has(address));
    if (target !== 'gpu') return { type: target };
    const [index] = this.#gpusAt.get(attribute.busId(element, 'target')) ?? [];
    return index === undefined ? { type: 'absent' } : { type: 'gpu', index };
  }

  #nic(element: Element, cpu: number, pci: Element | null): [NicPart] | [] {
    const link = pci === null ? null : pciLink(pci);
    const busId = pci === null ? null : attribute.textAttribute(pci, 'busid');
    const nets = elementsOf(element, 'net').flatMap((net): NetPart[] => {
      if (!net.attributes.has('dev') || attribute.whole(net, 'net', 1) === 0) return [];
      const node = this.#nextNet(net);
      const megabits = attribute.whole(net, 'speed', 0);
      const { device: index, name } = node;
      return [{ index, name, megabits: megabits > 0 ? megabits : null, element: net, cpu, busId, link, node }];
    });
    this.nets.push(...nets);
    return nets.length === 0 ? [] : [{ kind: 'nic', busId, link, nets }];
  }

  #nextNet(element: Element): NetNode {
    const node = this.#machine.nets[this.#netsSeen];
    this.#netsSeen += 1;
    if (node === undefined) throw new TopologyError(`${locationOf(element)}: stands in no <nic> of a processor`);
    return node;
  }
}

function deviceKind(deviceClass: string): DevicePart['what'] {
  if (/^0x03/iu.test(deviceClass)) return 'GPU';
  return /^0x02/iu.test(deviceClass) ? 'NIC' : 'device';
}
