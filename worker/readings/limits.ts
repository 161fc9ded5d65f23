/** Limits of a process that starts here as a rank does, of its control group, and settings of the kernel. */
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { isContainer } from './system.ts';
import { numberIn, numberOf } from './whole-numbers.ts';

export function readLimits(root: string): HostReadings['limits'] {
  const text = readText(root, 'proc/self/limits');
  const soft = (name: string): number | 'unlimited' | null => {
    const value = new RegExp(`^${name}\\s+(\\S+)`, 'mu').exec(text)?.[1];
    return value === 'unlimited' ? value : numberOf(value);
  };
  return {
    lockedMemoryBytes: soft('Max locked memory'),
    openFiles: soft('Max open files'),
    stackBytes: soft('Max stack size'),
    processes: soft('Max processes'),
    coreBytes: soft('Max core file size'),
  };
}

/** The nearest group that sets a limit counts, as the kernel sees it from within: its own directory, or the root of the container. */
export function readCgroup(root: string): Omit<HostReadings['cgroup'], 'throttledMeanwhile'> {
  const own = readText(root, 'proc/self/cgroup').split('\n');
  const at = (controller: string): string[] => {
    const place = own.map((line) => /^\d+:([^:]*):(.*)$/u.exec(line)).find((match) => match?.[1] === controller)?.[2];
    const base = controller === '' ? 'sys/fs/cgroup' : `sys/fs/cgroup/${controller}`;
    return place === undefined ? [base] : [`${base}${place}`, base];
  };
  const first = (controller: string, file: string): string =>
    at(controller)
      .map((directory) => readText(root, `${directory}/${file}`))
      .find((text) => text !== '') ?? '';
  const [quota, period] = first('', 'cpu.max').split(' ');
  const oldQuota = numberOf(first('cpu', 'cpu.cfs_quota_us'));
  const cores = numberOf(quota) ?? (oldQuota === null || oldQuota === 0 ? null : oldQuota);
  const over = numberOf(period) ?? numberOf(first('cpu', 'cpu.cfs_period_us'));
  const memoryBytes = numberOf(first('', 'memory.max')) ?? numberOf(first('memory', 'memory.limit_in_bytes'));
  return {
    cores: cores === null || over === null ? null : cores / over,
    // Version 1 writes a number near 2^63 where there is none.
    memoryBytes: memoryBytes === null || memoryBytes > 2 ** 60 ? null : memoryBytes,
    memoryUsedBytes: numberOf(
      /^(?:anon|total_rss) (\d+)$/mu.exec(`${first('', 'memory.stat')}\n${first('memory', 'memory.stat')}`)?.[1],
    ),
    tasks: numberOf(first('', 'pids.max')) ?? numberOf(first('pids', 'pids.max')),
    tasksNow: numberOf(first('', 'pids.current')) ?? numberOf(first('pids', 'pids.current')),
    throttledPeriods: numberOf(
      /^nr_throttled (\d+)$/mu.exec(`${first('', 'cpu.stat')}\n${first('cpu', 'cpu.stat')}`)?.[1],
    ),
  };
}

export function readKernelSettings(root: string): HostReadings['kernelSettings'] {
  const [from, to] = readText(root, 'proc/sys/net/ipv4/ip_local_port_range').split(/\s+/u).map(numberOf);
  const hugePages = /\[(\w+)\]/u.exec(readText(root, 'sys/kernel/mm/transparent_hugepage/enabled'))?.[1] ?? null;
  return {
    ptraceScope: numberIn(root, 'proc/sys/kernel/yama/ptrace_scope'),
    portRange: typeof from === 'number' && typeof to === 'number' ? [from, to] : null,
    receiveBufferBytes: lastNumber(readText(root, 'proc/sys/net/ipv4/tcp_rmem')),
    sendBufferBytes: lastNumber(readText(root, 'proc/sys/net/ipv4/tcp_wmem')),
    numaBalancing: numberIn(root, 'proc/sys/kernel/numa_balancing'),
    hugePages,
    removesIpc: removesIpc(root),
    ...coreFiles(root),
    reversePathFilter: ofCards(root, 'rp_filter', Math.max),
    arpIgnore: ofCards(root, 'arp_ignore', Math.min),
  };
}

/** The kernel takes the greater of an interface's own value and that of all; of several network cards `of` chooses. */
function ofCards(root: string, name: string, of: (...values: readonly number[]) => number): number | null {
  const all = numberIn(root, `proc/sys/net/ipv4/conf/all/${name}`);
  if (all === null) return null;
  const cards = listDirectory(root, 'proc/sys/net/ipv4/conf').filter(
    (card) => listDirectory(root, `sys/class/net/${card}/device`).length > 0,
  );
  const values = cards.map((card) => Math.max(all, numberIn(root, `proc/sys/net/ipv4/conf/${card}/${name}`) ?? all));
  return values.length === 0 ? all : of(...values);
}

/** `|/usr/lib/systemd/systemd-coredump %P …`, `/var/cores/core.%p`, `core` in the working directory. */
function coreFiles(root: string): Pick<HostReadings['kernelSettings'], 'corePattern' | 'corePlaceExists'> {
  const pattern = readText(root, 'proc/sys/kernel/core_pattern');
  if (isContainer(root)) return { corePattern: null, corePlaceExists: null };
  const [path = ''] = pattern.replace(/^\|\s*/u, '').split(/\s/u);
  const place = pattern.startsWith('|') ? path : dirname(path);
  const isFixed = isAbsolute(path) && !place.includes('%');
  return {
    corePattern: pattern === '' ? null : pattern.slice(0, 200),
    corePlaceExists: pattern === '' ? null : !isFixed || existsSync(join(root, place)),
  };
}

/** tcp_rmem: least, usual, greatest. */
function lastNumber(text: string): number | null {
  return numberOf(text.split(/\s+/u).at(-1));
}

/** systemd-logind's usual value is yes for users that are not of the system; distributions for servers set it to no. */
function removesIpc(root: string): boolean {
  const directories = ['etc/systemd/logind.conf.d', 'usr/lib/systemd/logind.conf.d'];
  const files = directories.flatMap((directory) =>
    listDirectory(root, directory)
      .toSorted()
      .map((name) => `${directory}/${name}`),
  );
  const values = ['etc/systemd/logind.conf', ...files].flatMap((file) =>
    Array.from(readText(root, file).matchAll(/^\s*RemoveIPC\s*=\s*(\w+)/gimu), ([, value = '']) => value),
  );
  return /^(yes|true|1|on)$/iu.test(values.at(-1) ?? '');
}
