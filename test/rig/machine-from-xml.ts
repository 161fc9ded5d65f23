/** A machine as a topology file describes it: its /sys, and what NVML, CUDA and its network say. Detection is to give the file back. */
import { elementsOf, everyElement } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import type { GpuFacts, MachineFacts, NetFacts, NvLink } from '../../worker/topology/facts.ts';
import { looksLikeAddress } from '../../worker/topology/walk.ts';
import { FakeSysfs } from './sysfs.ts';

/** Of the other end of a link, which must not be the slower one. */
const FASTEST = { max_link_speed: '64.0 GT/s PCIe', max_link_width: '32' };

/** How NVML writes the address of what a virtual machine is not to see. */
const INVISIBLE = 'fffffff:';

export interface Machine extends Disposable {
  readonly root: string;
  readonly facts: MachineFacts;
}

export function machineFrom(system: Element): Machine {
  const making = new Making();
  for (const cpu of elementsOf(system, 'cpu')) making.addCpu(cpu);
  making.addTargets(system);
  return making.finish(system);
}

class Making {
  readonly #sysfs = new FakeSysfs();
  readonly #gpus: GpuFacts[] = [];
  readonly #nets: NetFacts[] = [];
  readonly #ranks = new Map<number, number>();
  #ports = 0;

  addCpu(cpu: Element): void {
    const numa = text(cpu, 'numaid');
    if (numa !== '-1') this.#sysfs.write(`sys/devices/system/node/node${numa}/cpulist`, `${Number(numa) * 8}`);
    const affinity = cpu.attributes.get('affinity');
    if (affinity !== undefined) this.#sysfs.write(`sys/devices/system/node/node${numa}/cpumap`, affinity);
    const [vendor, family, model] = ['vendor', 'familyid', 'modelid'].map((name) => text(cpu, name));
    const processor = `processor\t: 0\nvendor_id\t: ${vendor}\ncpu family\t: ${family}\nmodel\t\t: ${model}\nmodel name\t: X`;
    this.#sysfs.write('proc/cpuinfo', processor);
    for (const pci of elementsOf(cpu, 'pci')) this.#addPci(pci, this.#complex(pci), numa);
    for (const nic of elementsOf(cpu, 'nic')) this.#addNets(nic, null);
  }

  /** What NVLinks lead to and is no GPU: NVSwitches that can be seen. */
  addTargets(system: Element): void {
    const known = new Set(Array.from(everyElement(system), (one) => text(one, 'busid')));
    for (const link of everyElement(system)) {
      const target = text(link, 'target');
      if (link.name !== 'nvlink' || known.has(target) || !looksLikeAddress(target) || target.startsWith(INVISIBLE))
        continue;
      known.add(target);
      this.#sysfs.addPci(`sys/devices/pciffff:00/${target}`, { class: text(link, 'tclass') });
    }
  }

  finish(system: Element): Machine {
    const [cpu] = elementsOf(system, 'cpu');
    const sysfs = this.#sysfs;
    return {
      root: sysfs.root,
      facts: {
        gpus: this.#gpus.toSorted((one, other) => one.index - other.index),
        nets: this.#nets,
        hostHash: cpu?.attributes.get('host_hash') ?? null,
        architecture: cpu === undefined ? '' : text(cpu, 'arch'),
        rankOf: ({ index }) => this.#ranks.get(index),
      },
      [Symbol.dispose]: () => sysfs[Symbol.dispose](),
    };
  }

  /** Where the device stands: below a root port, or, where no port says how wide the link is, at the root itself. */
  #complex(pci: Element): string {
    const root = `sys/devices/pci${text(pci, 'busid').slice(0, 7)}`;
    return text(pci, 'link_width') === '0' ? root : `${root}/${this.#port()}`;
  }

  #port(): string {
    this.#ports += 1;
    return `eeee:${this.#ports.toString(16).padStart(2, '0')}:00.0`;
  }

  #addPci(pci: Element, below: string, numa: string): void {
    const path = `${below}/${text(pci, 'busid')}`;
    const { busid: _, link_speed: speed = '', link_width: width = '', ...files } = all(pci);
    const link: Record<string, string> = speed === '' ? {} : { max_link_speed: speed, max_link_width: width };
    if (width === '0') {
      const device = speed === '' ? {} : { ...link, max_link_width: '16' };
      this.#sysfs.addPci(path, { ...files, ...device, numa_node: numa });
    } else {
      const slowPort = this.#ports % 2 === 0; // now the one, now the other end is the slower one
      this.#sysfs.addPci(below, { class: '0x060400', numa_node: numa, ...(slowPort ? link : FASTEST) });
      this.#sysfs.addPci(path, { ...files, ...(slowPort ? FASTEST : link), numa_node: numa });
    }
    for (const child of elementsOf(pci, 'pci')) this.#addPci(child, `${path}/${this.#port()}`, numa);
    for (const gpu of elementsOf(pci, 'gpu')) this.#addGpu(text(pci, 'busid'), gpu);
    for (const nic of elementsOf(pci, 'nic')) this.#addNets(nic, path);
  }

  #addGpu(busId: string, gpu: Element): void {
    const index = Number(text(gpu, 'dev'));
    const rank = gpu.attributes.get('rank');
    if (rank !== undefined) this.#ranks.set(index, Number(rank));
    const [c2c] = elementsOf(gpu, 'c2c');
    this.#gpus.push({
      busId: `0000${busId.toUpperCase()}`,
      index,
      computeCapability: Number(text(gpu, 'sm')),
      gpuDirect: text(gpu, 'gdr') === '1',
      links: [...elementsOf(gpu, 'nvlink').flatMap(linksTo), { active: false, remote: null }],
      c2c: c2c === undefined ? null : { count: Number(text(c2c, 'count')), bandwidth: Number(text(c2c, 'bw')) },
    });
  }

  #addNets(nic: Element, path: string | null): void {
    for (const net of elementsOf(nic, 'net')) {
      this.#nets[Number(text(net, 'dev'))] = {
        name: text(net, 'name'),
        path,
        port: Number(text(net, 'port')),
        speed: Number(text(net, 'speed')),
        latency: net.attributes.get('latency') ?? null,
        guid: text(net, 'guid'),
        maxConnections: Number(text(net, 'maxconn')),
        gpuDirect: text(net, 'gdr') === '1',
      };
    }
  }
}

function linksTo(link: Element): NvLink[] {
  const target = text(link, 'target').toUpperCase();
  const remote = looksLikeAddress(target) ? `0000${target}` : target;
  return Array.from({ length: Number(text(link, 'count')) }, () => ({ active: true, remote }));
}

function text(from: Element, name: string): string {
  return from.attributes.get(name) ?? '';
}

function all(from: Element): Record<string, string> {
  return Object.fromEntries(from.attributes);
}

/** The same for equal trees, in whatever order siblings and attributes stand. */
export function canonical(root: Element): string {
  const attributes = Array.from(root.attributes, ([name, value]) => `${name}="${value}"`).toSorted();
  const below = elementsOf(root).map(canonical).toSorted();
  return `<${[root.name, ...attributes].join(' ')}>\n${below.join('').replaceAll(/^/gmu, ' ').trimEnd()}\n`;
}
