/** Puts a machine together from sysfs and facts, in the order of NCCL's dumps: the first GPU, the nets, the other GPUs. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { cpuAttributes, numaNodes } from './cpu.ts';
import type { GpuFacts, MachineFacts } from './facts.ts';
import { addNet, pciAddressOf } from './net.ts';
import { gpuElement } from './nvlink.ts';
import { pciAttributes } from './pci.ts';
import { walkUp } from './walk.ts';

/** Classes of devices that sysfs does not describe. */
const DISPLAY = '0x03';
const NETWORK = '0x02';

/** Reads sysfs and /proc below `root`. */
export function assemble(root: string, facts: MachineFacts): Element {
  const machine = new Assembly(root, facts);
  const [first, ...others] = facts.gpus;
  if (first !== undefined) machine.addGpu(first);
  facts.nets.forEach((net, device) => {
    const address = pciAddressOf(root, net);
    addNet(address === null ? machine.firstCpu() : machine.pci(address, NETWORK), net, device);
  });
  for (const gpu of others) machine.addGpu(gpu);
  machine.addEmptyCpus();
  return machine.system;
}

class Assembly {
  readonly system = element('system', { version: 1 });
  readonly #root: string;
  readonly #facts: MachineFacts;
  readonly #cpus = new Map<string, Element>();
  readonly #devices = new Map<string, Element>();

  constructor(root: string, facts: MachineFacts) {
    this.#root = root;
    this.#facts = facts;
  }

  addGpu(gpu: GpuFacts): void {
    this.pci(gpu.busId, DISPLAY).children.push(gpuElement(this.#root, gpu, this.#facts.rankOf(gpu)));
  }

  /** The element of a device, with the switches above it; each is made once. */
  pci(address: string, otherwise: string): Element {
    const { devices, numa } = walkUp(this.#root, address);
    const known = devices.findIndex(({ busId }) => this.#devices.has(busId));
    let above = this.#devices.get(devices[known]?.busId ?? '') ?? this.#cpu(numa);
    for (const device of devices.slice(0, known === -1 ? devices.length : known).toReversed()) {
      const one = element('pci');
      const deviceClass = device === devices[0] ? otherwise : '';
      for (const [name, value] of pciAttributes(this.#root, device, deviceClass)) one.attributes.set(name, value);
      this.#devices.set(device.busId, one);
      insert(above, one, device.busId);
      above = one;
    }
    return above;
  }

  firstCpu(): Element {
    const [first] = this.#cpus.values();
    return first ?? this.#cpu(numaNodes(this.#root)[0] ?? '-1');
  }

  /** Adds NUMA nodes without devices, unless devices lack their node, as in many virtual machines. */
  addEmptyCpus(): void {
    if (!this.#cpus.has('-1')) for (const numa of numaNodes(this.#root)) this.#cpu(numa);
    if (this.#cpus.size === 0) this.#cpu('-1');
  }

  #cpu(numa: string): Element {
    let cpu = this.#cpus.get(numa);
    if (cpu === undefined) {
      const { hostHash, architecture } = this.#facts;
      cpu = element('cpu');
      for (const [name, value] of cpuAttributes(this.#root, numa, hostHash, architecture))
        cpu.attributes.set(name, value);
      this.#cpus.set(numa, cpu);
      this.system.children.push(cpu);
    }
    return cpu;
  }
}

/** Before the first PCI device with a higher address. */
function insert(parent: Element, child: Element, busId: string): void {
  const index = parent.children.findIndex(
    (other) => other.kind === 'element' && (other.attributes.get('busid') ?? '') > busId,
  );
  parent.children.splice(index === -1 ? parent.children.length : index, 0, child);
}
