/**
 * A topology file and what is detected become one (NCCL_TOPO_FILE). The file has precedence: for a device's parent, its links and each attribute.
 * What it lacks is detected. Only who uses a device is always of this run: `rank` of a GPU and `dev` of a net, so GPUs that no rank uses and
 * nets that the host does not have keep none, and `host_hash`, which names the host.
 */
import * as attribute from './attribute.ts';
import { elementsOf, everyElement } from './element.ts';
import type { Element } from './element.ts';
import { gpusByAddress } from './used-gpus.ts';

/** Both stay as they are. The file has been checked (check.ts). @throws TopologyError for a PCI address that is none */
export function fuse(file: Element, detected: Element): Element {
  const fusion = new Fusion(file);
  for (const cpu of elementsOf(detected, 'cpu')) fusion.addCpu(cpu);
  for (const cpu of elementsOf(detected, 'cpu')) fusion.addBelow(cpu);
  return fusion.finish();
}

class Fusion {
  readonly system: Element;
  readonly #devices = new Map<number, Element>();
  /** By address: the file's GPUs. */
  readonly #gpus: ReadonlyMap<number, readonly Element[]>;
  readonly #nets = new Map<string, Element>();
  readonly #cpus = new Map<number, Element>();
  /** The file's GPUs and nets that have not been met yet. */
  readonly #unused = new Set<Element>();
  /** The file has processors. */
  readonly #described: boolean;

  constructor(file: Element) {
    this.system = copy(file);
    for (const one of everyElement(this.system)) {
      if (one.name === 'cpu') this.#cpus.set(attribute.whole(one, 'numaid'), one);
      if (one.name === 'pci') this.#devices.set(attribute.busId(one), one);
      if (one.name === 'net') this.#nets.set(attribute.textAttribute(one, 'name'), one);
      if (one.name === 'gpu' || one.name === 'net') this.#unused.add(one);
    }
    this.#gpus = gpusByAddress(this.system);
    this.#described = this.#cpus.size > 0;
  }

  addCpu(cpu: Element): void {
    const known = this.#described ? this.#cpus.get(attribute.whole(cpu, 'numaid')) : this.#elementAt([cpu]);
    if (known !== undefined) fill(known, cpu);
    const hash = cpu.attributes.get('host_hash');
    // A file may number the nodes differently from the kernel; the processors are of one kind nevertheless.
    for (const other of this.#cpus.values()) {
      fill(other, cpu, ['affinity']);
      if (hash !== undefined) other.attributes.set('host_hash', hash);
    }
  }

  /** Adds the children of the last element of `path`, which leads down from the processor through detected elements. */
  addBelow(...path: readonly Element[]): void {
    for (const child of elementsOf(path.at(-1) ?? this.system)) {
      if (child.name === 'pci') {
        const known = this.#devices.get(attribute.busId(child));
        if (known !== undefined) fill(known, child);
        this.addBelow(...path, child);
      }
      if (child.name === 'gpu') this.#addGpu(this.#elementAt(path), child);
      if (child.name === 'nic') for (const net of elementsOf(child, 'net')) this.#addNet(net, path);
    }
  }

  #addGpu(pci: Element, gpu: Element): void {
    const given = this.#gpus.get(attribute.busId(pci)) ?? [];
    const known = given.find((one) => this.#unused.has(one));
    if (known === undefined) {
      pci.children.push(copy(gpu));
      return;
    }
    fill(known, gpu);
    for (const name of ['nvlink', 'c2c']) addLinks(known, gpu, name);
    this.#use(known, gpu, 'rank');
  }

  #addNet(net: Element, path: readonly Element[]): void {
    const known = this.#nets.get(attribute.textAttribute(net, 'name'));
    if (known !== undefined) {
      fill(known, net);
      return this.#use(known, net, 'dev');
    }
    // What is no PCI device stands below the first processor, whatever its number is.
    const [cpu] = this.#cpus.values();
    const parent = path.length === 1 && cpu !== undefined ? cpu : this.#elementAt(path);
    let [nic] = elementsOf(parent, 'nic');
    if (nic === undefined) parent.children.push((nic = bare('nic')));
    nic.children.push(copy(net));
  }

  /** `name`: the attribute that is of this run. */
  #use(known: Element, found: Element, name: string): void {
    this.#unused.delete(known);
    const value = found.attributes.get(name);
    if (value === undefined) known.attributes.delete(name);
    else known.attributes.set(name, value);
  }

  finish(): Element {
    for (const one of this.#unused) one.attributes.delete(one.name === 'gpu' ? 'rank' : 'dev');
    return this.system;
  }

  /** Returns the file's element for the last detected element of `path`, and creates missing ones. */
  #elementAt(path: readonly Element[]): Element {
    const last = path.at(-1);
    if (last === undefined) return this.system;
    const known =
      last.name === 'pci' ? this.#devices.get(attribute.busId(last)) : this.#cpus.get(attribute.whole(last, 'numaid'));
    if (known !== undefined) return known;
    const made = bare(last.name);
    fill(made, last);
    this.#elementAt(path.slice(0, -1)).children.push(made);
    if (last.name === 'pci') this.#devices.set(attribute.busId(last), made);
    else this.#cpus.set(attribute.whole(last, 'numaid'), made);
    return made;
  }
}

function addLinks(to: Element, from: Element, name: string): void {
  const links = elementsOf(to, name);
  if (links.length === 0) to.children.push(...elementsOf(from, name).map(copy));
  for (const link of links) {
    const target = link.attributes.get('target');
    const same = elementsOf(from, name).find((one) => one.attributes.get('target') === target);
    if (same !== undefined) fill(link, same);
  }
}

/** Gives `to` those attributes of `from` that it lacks. */
function fill(to: Element, from: Element, but: readonly string[] = []): void {
  for (const [name, value] of from.attributes) {
    if (!to.attributes.has(name) && !but.includes(name)) to.attributes.set(name, value);
  }
}

function copy(from: Element): Element {
  const children = from.children.map((child) => (child.kind === 'element' ? copy(child) : child));
  return { ...from, attributes: new Map(from.attributes), children };
}

function bare(name: string): Element {
  return { kind: 'element', name, attributes: new Map(), children: [], location: null };
}
