/** What hosts of one job should have in common, as this host has it; for people, and cheap: a few small files. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { listDirectory, readText } from '../topology/system-files.ts';

/** By what it is; what a host does not have is left out. `root` is `/`, or a test's directory. */
export function preflightFacts(root = '/'): Record<string, string> {
  const limits = readText(root, 'proc/self/limits');
  const facts = {
    'NVIDIA driver': readText(root, 'sys/module/nvidia/version'),
    CUDA:
      /"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"/s.exec(readText(root, 'usr/local/cuda/version.json'))?.[1] ?? '',
    'InfiniBand ports': infiniBandPorts(root),
    'lockable memory': limitOf(limits, 'Max locked memory', bytesText),
    'open files': limitOf(limits, 'Max open files', String),
    '/dev/shm': sharedMemory(root),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ''));
}

/** `8 active`, `7 active, mlx5_3 port 1 down`. */
function infiniBandPorts(root: string): string {
  const ports = listDirectory(root, 'sys/class/infiniband')
    .toSorted()
    .flatMap((device) =>
      listDirectory(root, `sys/class/infiniband/${device}/ports`).map((port) => {
        // "4: ACTIVE"
        const state = readText(root, `sys/class/infiniband/${device}/ports/${port}/state`).replace(/^\d+: /, '');
        return { name: `${device} port ${port}`, state: state.toLowerCase() };
      }),
    );
  const others = ports.filter(({ state }) => state !== 'active').map(({ name, state }) => `${name} ${state}`);
  return ports.length === 0 ? '' : [`${ports.length - others.length} active`, ...others].join(', ');
}

/** The soft limit. */
function limitOf(limits: string, name: string, text: (value: number) => string): string {
  const value = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(limits)?.[1];
  if (value === undefined) return '';
  return value === 'unlimited' ? value : text(Number(value));
}

function sharedMemory(root: string): string {
  try {
    const { blocks, bsize } = statfsSync(join(root, 'dev/shm'));
    return bytesText(blocks * bsize);
  } catch {
    return 'none';
  }
}

/** Two digits: hosts whose memory differs by a little are alike. */
function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1024 ** power).toPrecision(2))} ${units[power] ?? ''}`;
}
