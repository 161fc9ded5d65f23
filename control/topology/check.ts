/** Whether a file is a topology: what stands where, and that numbers are numbers. What is missing may still be detected. */
import * as attribute from './attribute.ts';
import { elementsOf, everyElement, placeOf, TopologyError } from './element.ts';
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

const WHOLE: Readonly<Record<string, readonly string[]>> = {
  cpu: ['numaid', 'familyid', 'modelid'],
  pci: ['class', 'vendor', 'device', 'subsystem_vendor', 'subsystem_device'],
  gpu: ['dev', 'sm', 'rank', 'gdr'],
  net: ['dev', 'speed', 'port', 'maxconn', 'gdr', 'coll', 'net'],
  nvlink: ['count', 'tclass'],
  c2c: ['bw', 'count'],
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
    throw new TopologyError(`${placeOf(system)}: a topology begins with <system>`);
  }
  const version = attribute.whole(system, 'version', VERSION);
  if (version !== VERSION) throw new TopologyError(`${placeOf(system)}: version="${version}", expected ${VERSION}`);
  checkLimits(system);
  for (const parent of everyElement(system)) {
    for (const child of elementsOf(parent)) {
      const parents = PARENTS[child.name];
      if (parents !== undefined && !parents.includes(parent.name)) {
        const wanted = parents.map((name) => `<${name}>`).join(' or ');
        throw new TopologyError(`${placeOf(child)}: stands in <${parent.name}>, belongs in ${wanted}`);
      }
      checkAttributes(child);
    }
  }
}

function checkAttributes(one: Element): void {
  if (one.name === 'pci') {
    attribute.busId(one);
    attribute.lanes(one);
  }
  if (one.name === 'net') attribute.decimal(one, 'latency', 0);
  for (const name of NEEDED[one.name] ?? []) attribute.text(one, name);
  for (const name of WHOLE[one.name] ?? []) attribute.whole(one, name, 0);
}
