/**
 * Whether a file is a topology: what stands where, and that attributes mean something. The one check of `ncclrun topo`, `ncclrun plan` and jobs; what is
 * missing may still be detected.
 */
import * as attribute from './attribute.ts';
import { elementsOf, everyElement, locationOf, TopologyError } from './element.ts';
import type { Element } from './element.ts';
import { checkLimits } from './limits.ts';

/** Of NCCL's format. */
const VERSION = 1;

/** Where each element may stand; of others nothing is known. */
const PARENTS: Readonly<Record<string, readonly string[]>> = {
  cpu: ['system'],
  pci: ['cpu', 'pci'],
  nic: ['cpu', 'pci'],
  gpu: ['pci'],
  net: ['nic'],
  nvlink: ['gpu'],
  c2c: ['gpu'],
  pcilink: ['pci'],
};

type Range = readonly [min: number, max: number];

const IDENTIFIER: Range = [0, 0xffff_ffff];
const SIGNED: Range = [-(2 ** 31), 2 ** 31 - 1];
const NUMBER: Range = [0, 2 ** 31 - 1];
const SWITCH: Range = [0, 1];
/** Of NVLinks between two ends, or of a GPU to its processor. */
const LINKS: Range = [1, 1024];
/** MB/s; ten times what a superchip has. */
const C2C_BANDWIDTH: Range = [0, 10_000_000];

/** Whole numbers, decimal or hexadecimal. */
const WHOLE: Readonly<Record<string, Readonly<Record<string, Range>>>> = {
  cpu: { numaid: [-1, 65_535], familyid: SIGNED, modelid: SIGNED },
  pci: {
    vendor: IDENTIFIER,
    device: IDENTIFIER,
    subsystem_vendor: IDENTIFIER,
    subsystem_device: IDENTIFIER,
  },
  gpu: { dev: [0, 65_535], sm: [0, 1000], rank: NUMBER, gdr: SIGNED, mlopart: [0, 1024] },
  net: { dev: [0, 65_535], speed: SIGNED, port: SIGNED, maxconn: SIGNED, gdr: SIGNED, coll: SIGNED, net: SWITCH },
  nvlink: { count: LINKS, tclass: IDENTIFIER },
  c2c: { bw: C2C_BANDWIDTH, count: LINKS },
};

const NEEDED: Readonly<Record<string, readonly string[]>> = {
  cpu: ['numaid'],
  net: ['name'],
  nvlink: ['target', 'count'],
  c2c: ['bw', 'count'],
};

/** @throws TopologyError with file, line, column and reason */
export function checkTopology(system: Element): void {
  if (system.name !== 'system') {
    const graphs = system.name === 'graphs' ? '; this is a file of graphs, for NCCL_GRAPH_FILE' : '';
    throw new TopologyError(`${locationOf(system)}: a topology begins with <system>${graphs}`);
  }
  const version = attribute.whole(system, 'version', VERSION);
  if (version !== VERSION) throw new TopologyError(`${locationOf(system)}: version="${version}", expected ${VERSION}`);
  checkLimits(system);
  for (const parent of everyElement(system)) {
    for (const child of elementsOf(parent)) {
      const parents = PARENTS[child.name];
      if (parents !== undefined && !parents.includes(parent.name)) {
        const wanted = parents.map((name) => `<${name}>`).join(' or ');
        throw new TopologyError(`${locationOf(child)}: stands in <${parent.name}>, belongs in ${wanted}`);
      }
      checkAttributes(child);
    }
  }
  checkHosts(system);
  checkAddresses(system);
}

function checkAttributes(one: Element): void {
  if (one.name === 'pci') {
    attribute.busId(one);
    attribute.lanes(one);
    attribute.linkSpeed(one);
    attribute.deviceClass(one);
  }
  if (one.name === 'net') attribute.decimal(one, 'latency', 0);
  for (const name of NEEDED[one.name] ?? []) attribute.textAttribute(one, name);
  for (const [name, [min, max]] of Object.entries(WHOLE[one.name] ?? {})) {
    if (one.attributes.has(name)) attribute.wholeWithin(one, name, min, max);
  }
  if (
    one.name === 'pcilink' ||
    (one.name === 'nvlink' && attribute.textAttribute(one, 'tclass', '').startsWith('0x03'))
  ) {
    attribute.busId(one, 'target');
  }
}

/** NCCL fuses what hosts of one NVLink domain are into one dump, with equal addresses in each. */
function checkHosts(system: Element): void {
  const cpus = elementsOf(system, 'cpu').filter(({ attributes }) => attributes.has('host_hash'));
  const hashes = [...new Set(cpus.map(({ attributes }) => attributes.get('host_hash')))];
  const [first, second] = hashes;
  const other = cpus.find(({ attributes }) => attributes.get('host_hash') === second);
  if (second === undefined || other === undefined) return;
  throw new TopologyError(
    `${locationOf(other)}: host_hash="${second}", and "${first}" before: the file describes ${hashes.length} hosts, a topology describes one: ` +
      'keep the <cpu> elements of one host_hash',
  );
}

/** GPUs may have one address: parts of a GPU, and those of processors with several. */
function checkAddresses(system: Element): void {
  const known = new Map<number, Element>();
  for (const pci of everyElement(system)) {
    if (pci.name !== 'pci') continue;
    const address = attribute.busId(pci);
    const before = known.get(address);
    known.set(address, pci);
    if (before === undefined || (hasGpu(before) && hasGpu(pci))) continue;
    throw new TopologyError(`${locationOf(pci)}: busid="${attribute.textAttribute(pci, 'busid')}" is there twice`);
  }
}

function hasGpu(pci: Element): boolean {
  return elementsOf(pci, 'gpu').length > 0;
}
