/** Ports of InfiniBand and RoCE cards, as nets. */
import type { VerbsPort } from '../engine/native.ts';
import type { NetFacts } from './facts.ts';
import { admits, parseNameList } from '../../control/name-list.ts';
import { listDirectory, readText } from './system-files.ts';
import { realPath } from './walk.ts';

/** Lanes by the bits of `active_width`, Mbit/s and lane by those of `active_speed`: the InfiniBand specification's, as rdma-core has them. */
const WIDTHS = [1, 4, 8, 12, 2];
const SPEEDS = [2500, 5000, 10_000, 10_000, 14_000, 25_000, 50_000, 100_000, 200_000];
/** Modules by which a card reaches GPUs' memory: nvidia-peermem, and Mellanox' older nv_peer_mem. */
const PEER_MEMORY = [
  'sys/module/nvidia_peermem',
  'sys/kernel/mm/memory_peers/nv_mem',
  'sys/kernel/mm/memory_peers/nv_mem_nc',
  'sys/module/nv_peer_mem',
];

/** `chosen`: NCCL_IB_HCA. */
export function verbsNets(root: string, ports: readonly VerbsPort[], chosen: string | undefined): NetFacts[] {
  const list = parseNameList(chosen);
  const gpuDirect = PEER_MEMORY.some((path) => realPath(root, path) !== null);
  const usable = ports.filter(({ active, name, port }) => active && (list === null || admits(list, name, port)));
  const before = new Map<string, number>();
  return usable.map((one) => {
    const path = realPath(root, `sys/class/infiniband/${one.name}/device`);
    const card = cardOf(path ?? one.name);
    const others = before.get(card) ?? 0;
    before.set(card, others + 1);
    return {
      name: one.name,
      path: path === null ? null : cardOf(path),
      port: one.port + others,
      speed: speedOf(root, one),
      latency: '0',
      guid: one.guid,
      maxConnections: one.maxQueuePairs,
      gpuDirect,
    };
  });
}

/** Ports of one card show as functions of one PCI device: function 0 stands for it, if it is there. */
function cardOf(path: string): string {
  return path.replace(/(:[0-9a-f]{2}\.)[0-9a-f]$/iu, '$10');
}

/** Mbit/s; 0: unknown. */
export function speedOf(root: string, { name, port, activeWidth, activeSpeed }: VerbsPort): number {
  const lanes = WIDTHS[lowestBit(activeWidth)] ?? 0;
  const speed = lanes * (SPEEDS[lowestBit(activeSpeed)] ?? 0);
  if (speed > 0) return speed;
  // Faster than the library's eight bits can express: "800 Gb/sec (4X XDR)".
  return Number.parseFloat(readText(root, `sys/class/infiniband/${name}/ports/${port}/rate`)) * 1000 || 0;
}

/** -1: none is set. */
function lowestBit(bits: number): number {
  return bits === 0 ? -1 : 31 - Math.clz32(bits & -bits);
}

/** Names of the cards that the kernel knows, whether or not the library is there. */
export function kernelCards(root: string): string[] {
  return listDirectory(root, 'sys/class/infiniband').toSorted();
}
