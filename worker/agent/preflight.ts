/** What hosts of one job should have in common, as this host has it; for people, and cheap: a few small files. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { HostVerbs, HostVerbsPort } from '../../control/messages/nic.ts';
import { binarySize } from '../../control/size-text.ts';
import { listDirectory, readText } from '../topology/system-files.ts';

/** By what it is; what a host does not have is left out. `root` is `/`, or a test's directory. `verbs`: null where nobody asks for it. */
export function preflightFacts(root = '/', verbs: HostVerbs | null = null): Record<string, string> {
  const limits = readText(root, 'proc/self/limits');
  const facts = {
    'NVIDIA driver': readText(root, 'sys/module/nvidia/version'),
    CUDA:
      /"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"/s.exec(readText(root, 'usr/local/cuda/version.json'))?.[1] ?? '',
    'InfiniBand ports': infiniBandPorts(root, verbs?.ports ?? []),
    'lockable memory': limitOf(limits, 'Max locked memory', bytesText),
    'open files': limitOf(limits, 'Max open files', String),
    '/dev/shm': sharedMemory(root),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ''));
}

/** `8 active, 400 Gb/s, MTU 4096`; `7 active, mlx5_3 port 1 down, 400 Gb/s, MTU 4096`. */
function infiniBandPorts(root: string, known: readonly HostVerbsPort[]): string {
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
  // A card that a library stands for is not among the kernel's.
  const active = Math.max(ports.length - others.length, known.length);
  return active + others.length === 0 ? '' : [`${active} active`, ...others, ...ratesAndMtus(known)].join(', ');
}

/** Once for all ports where they are alike, else by port. */
function ratesAndMtus(ports: readonly HostVerbsPort[]): string[] {
  const own = ports.map(({ speedMbps, mtu }) => `${speedMbps / 1000} Gb/s, MTU ${mtu}`);
  const [first] = new Set(own);
  if (first === undefined || own.every((text) => text === first)) return first === undefined ? [] : [first];
  return ports.slice(0, MAX_PORTS).map(({ card, port }, index) => `${card} port ${port} ${own[index]}`);
}

/** A host with more has ports of virtual machines; a fact is no longer than 1000 characters. */
const MAX_PORTS = 18;

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
  return binarySize(bytes, 2);
}
