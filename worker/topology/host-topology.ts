/** What this host has that ranks can be placed on: the cores we may run on, their NUMA nodes, and GPUs with the cores near them. */
import type { Core, Gpu, HostTopology } from '../../control/messages/topology.ts';
import { visibleGpus } from './gpus.ts';
import { listDirectory, parseCpuList, readText } from './system-files.ts';

/** Reads /proc, /sys and /dev below `root`; starts nothing. */
export function hostTopology(root = '/', visible = process.env['CUDA_VISIBLE_DEVICES']): HostTopology {
  const allowed = allowedCpus(root);
  const numaOf = numaOfCpus(root);
  const cores: Core[] = [];
  const seen = new Set<number>();
  for (const cpu of allowed) {
    if (seen.has(cpu)) continue;
    const siblings = parseCpuList(readText(root, `sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`));
    const cpus = allowed.filter((other) => other === cpu || siblings.includes(other));
    for (const one of cpus) seen.add(one);
    cores.push({ cpus, numa: numaOf.get(cpu) ?? 0 });
  }
  return { cores, gpus: visibleGpus(visible, root).map(({ address }) => gpuAt(root, address, allowed)) };
}

/** Those of our own affinity mask, which a container's or batch system's cpuset has cut already. */
function allowedCpus(root: string): number[] {
  const status = readText(root, 'proc/self/status');
  const list = parseCpuList(/^Cpus_allowed_list:\s*(\S+)/mu.exec(status)?.[1] ?? '');
  return list.length > 0 ? list : [0];
}

function numaOfCpus(root: string): ReadonlyMap<number, number> {
  const directory = 'sys/devices/system/node';
  const nodes = listDirectory(root, directory).flatMap((name) => /^node([0-9]+)$/u.exec(name)?.[1] ?? []);
  return new Map(
    nodes.flatMap((node) =>
      parseCpuList(readText(root, `${directory}/node${node}/cpulist`)).map((cpu) => [cpu, Number(node)] as const),
    ),
  );
}

function gpuAt(root: string, address: string | null, allowed: readonly number[]): Gpu {
  if (address === null) return { cpus: [], numa: null };
  const directory = `sys/bus/pci/devices/${address.toLowerCase()}`;
  const near = new Set(parseCpuList(readText(root, `${directory}/local_cpulist`)));
  // The kernel reports -1 on machines with one NUMA node.
  const node = /^[0-9]+$/u.exec(readText(root, `${directory}/numa_node`))?.[0];
  return { cpus: allowed.filter((cpu) => near.has(cpu)), numa: node === undefined ? null : Number(node) };
}
