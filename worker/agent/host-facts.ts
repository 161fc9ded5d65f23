/** What an agent finds out about its host for its hello. Cheap: a few small files, no process. */
import { availableParallelism, networkInterfaces } from 'node:os';
import type { HostTopology } from '../../control/messages/topology.ts';
import { preflightFacts } from './preflight.ts';
import { visibleGpus } from '../topology/gpus.ts';
import { hostTopology } from '../topology/host-topology.ts';
import { admits, parseNameList } from '../topology/interface-names.ts';
import { readText } from '../topology/system-files.ts';

export interface HostFacts {
  readonly bootId: string;
  readonly cores: number;
  readonly gpus: number;
  readonly topology: HostTopology | null;
  readonly addresses: readonly string[];
  readonly launcherAddress: string | null;
  readonly preflight: Readonly<Record<string, string>>;
  readonly time: number;
}

/**
 * `alone`: the job has no other host, so nobody asks for addresses, nor compares it. `topology`: somebody asks for that. `interfaces`:
 * NCCL_SOCKET_IFNAME.
 */
export function hostFacts(alone: boolean, topology: boolean, interfaces?: string): HostFacts {
  const connection = sshConnection();
  return {
    bootId: readText('/', 'proc/sys/kernel/random/boot_id'),
    cores: availableParallelism(),
    gpus: visibleGpus().length,
    topology: topology ? hostTopology() : null,
    addresses: alone ? [] : reachableAddresses(connection?.server ?? null, interfaces),
    launcherAddress: connection?.client ?? null,
    preflight: alone ? {} : preflightFacts(),
    time: Date.now(),
  };
}

/** SSH_CONNECTION is "client-address client-port server-address server-port". */
function sshConnection(): { client: string; server: string } | null {
  const [client, , server] = (process.env['SSH_CONNECTION'] ?? '').split(' ');
  return client !== undefined && client !== '' && server !== undefined ? { client, server } : null;
}

interface Address {
  /** Of the interface. */
  readonly name: string;
  readonly family: string;
  readonly address: string;
}

/** No loopback, no link-local ones (they need a scope). */
function allAddresses(): Address[] {
  return Object.entries(networkInterfaces())
    .flatMap(([name, addresses]) => (addresses ?? []).map((one) => ({ ...one, name })))
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address));
}

/** Those of the interfaces that the list names, or all where it names none that is there. */
function chosenAddresses(interfaces: string | undefined): Address[] {
  const all = allAddresses();
  const list = parseNameList(interfaces);
  const chosen = list === null ? all : all.filter(({ name }) => admits(list, name));
  return chosen.length === 0 ? all : chosen;
}

/** The address ssh came in at leads, then IPv4 before IPv6. */
function reachableAddresses(first: string | null, interfaces: string | undefined): string[] {
  const found = chosenAddresses(interfaces);
  const ofFamily = (family: string) => found.filter((one) => one.family === family).map(({ address }) => address);
  // Behind an address translation it is no interface's.
  const excluded =
    allAddresses().some(({ address }) => address === first) && !found.some(({ address }) => address === first);
  return [...new Set([...(first === null || excluded ? [] : [first]), ...ofFamily('IPv4'), ...ofFamily('IPv6')])];
}

/** Why NCCL_SOCKET_IFNAME does not choose the interfaces by which this host is reached; null: it does, or nothing is chosen. */
export function interfaceProblem(interfaces: string | undefined): string | null {
  const list = parseNameList(interfaces);
  const names = [...new Set(allAddresses().map(({ name }) => name))];
  if (list === null || names.some((name) => admits(list, name))) return null;
  const has = names.length === 0 ? 'it has none' : `all that it has are used: ${names.join(', ')}`;
  return `NCCL_SOCKET_IFNAME=${interfaces} names no network interface of this host that is up and has an address; ${has}`;
}
