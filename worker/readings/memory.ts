/** Main memory: how much, what of it is in use, and what its error correction has counted. */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { namedNumbers, numberIn } from './whole-numbers.ts';

export function readMemory(root: string): Omit<HostReadings['memory'], 'swappedPages'> {
  const kilobytes = namedNumbers(readText(root, 'proc/meminfo'));
  const bytes = (name: string): number | null => {
    const value = kilobytes.get(name);
    return value === undefined ? null : value * 1024;
  };
  const [swap, freeSwap] = [bytes('SwapTotal'), bytes('SwapFree')];
  return {
    totalBytes: bytes('MemTotal'),
    availableBytes: bytes('MemAvailable'),
    swapUsedBytes: swap === null || freeSwap === null ? null : swap - freeSwap,
    numaNodeBytes: listDirectory(root, 'sys/devices/system/node')
      .filter((name) => /^node[0-9]+$/u.test(name))
      .map((node) => nodeBytes(readText(root, `sys/devices/system/node/${node}/meminfo`))),
    hugePageBytes: hugePageBytes(root),
    uncorrectedErrors: errors(root, 'ue_count'),
    correctedErrors: errors(root, 'ce_count'),
  };
}

/** `Node 0 MemTotal:  131 kB` */
function nodeBytes(text: string): number {
  return Number(/MemTotal:\s+([0-9]+)/u.exec(text)?.[1] ?? 0) * 1024;
}

/** Of all sizes: `hugepages-2048kB`. Null: the kernel has none. */
function hugePageBytes(root: string): number | null {
  const directory = 'sys/kernel/mm/hugepages';
  const sizes = listDirectory(root, directory).flatMap((name) => {
    const kilobytes = /^hugepages-(\d+)kB$/u.exec(name)?.[1];
    const pages = numberIn(root, `${directory}/${name}/nr_hugepages`);
    return kilobytes === undefined || pages === null ? [] : [Number(kilobytes) * 1024 * pages];
  });
  return sizes.length === 0 ? null : sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Of all memory controllers; null: the kernel watches none. */
function errors(root: string, name: string): number | null {
  const directory = 'sys/devices/system/edac/mc';
  const counts = listDirectory(root, directory)
    .filter((controller) => /^mc[0-9]+$/u.test(controller))
    .map((controller) => numberIn(root, `${directory}/${controller}/${name}`))
    .filter((count) => count !== null);
  return counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0);
}
