/** NUMA nodes with their processors, as attributes of NCCL's `cpu` element. */
import { listDirectory, readText } from './system-files.ts';

const NODES = 'sys/devices/system/node';

/** Of a NUMA node; `numa` is -1 where the kernel numbers none. */
export function cpuAttributes(
  root: string,
  numa: string,
  hostHash: string | null,
  architecture: string,
): [string, string][] {
  const attributes: [string, string][] = hostHash === null ? [] : [['host_hash', hostHash]];
  attributes.push(['numaid', numa]);
  const affinity = readText(root, `${NODES}/node${numa}/cpumap`);
  if (affinity !== '') attributes.push(['affinity', affinity]);
  attributes.push(['arch', architecture]);
  return architecture === 'x86_64' ? [...attributes, ...processor(readText(root, 'proc/cpuinfo'))] : attributes;
}

/**
 * Vendor, family and model as the kernel numbers them. (NCCL puts the extended family of AMD's and newer processors together in another way:
 * its 143 and 175 are the kernel's 23 and 25. Bandwidths depend on Intel's and Zhaoxin's numbers only, where both agree.)
 */
function processor(cpuinfo: string): [string, string][] {
  // Of the first one. A vendor may begin with blanks ("  Shanghai  ").
  const of = (name: string) => new RegExp(`^${name}\\s*:[ ]?(.*)$`, 'mu').exec(cpuinfo)?.[1] ?? '';
  const found: [string, string][] = [
    ['vendor', of('vendor_id')],
    ['familyid', of('cpu family')],
    ['modelid', of('model')],
  ];
  return found.filter(([, value]) => value !== '');
}

/** Numbers of the NUMA nodes that have processors (GPUs' memory may be a node too), in order. */
export function numaNodes(root: string): string[] {
  return listDirectory(root, NODES)
    .flatMap((name) => /^node([0-9]+)$/u.exec(name)?.[1] ?? [])
    .filter((node) => readText(root, `${NODES}/node${node}/cpulist`) !== '')
    .toSorted((one, other) => Number(one) - Number(other));
}

/** NCCL's word for what Node calls the processor's architecture. */
export function architectureName(node: string): string {
  return node === 'x64' ? 'x86_64' : node;
}
