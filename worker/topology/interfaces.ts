/** The network interfaces by which other hosts may reach this one: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose among those that are up. */
import { networkInterfaces } from 'node:os';
import type { NetworkInterfaceInfo } from 'node:os';
import type { HostNic } from '../../control/messages/nic.ts';
import { admits, parseNameList } from '../../control/name-list.ts';
import { deviceOf, isReal, reportedSpeed } from './sockets.ts';

/** What the user asks for. */
export interface InterfaceWishes {
  /** NCCL_SOCKET_IFNAME: `eth,ib0`, `^docker`, `=eth0`. */
  readonly names: string | undefined;
  /** NCCL_SOCKET_FAMILY: AF_INET or AF_INET6. */
  readonly family: string | undefined;
}

export const INTERFACE_REMEDY =
  'name interfaces that this host has (beginnings of their names, =NAME for a whole one, ^NAME for all others), or unset the variable';

interface Interfaces {
  /** Addresses that connections may use, interfaces in the system's order. */
  readonly nics: readonly HostNic[];
  /** Why the user's wishes cannot be met: a sentence without its end. null: they can. */
  readonly problem: string | null;
}

/** By name, as Node lists those that are up and running. */
type Listed = NodeJS.Dict<NetworkInterfaceInfo[]>;

/** `root`: `/`, or a test's directory. */
export function findInterfaces(wishes: InterfaceWishes, root = '/', listed: Listed = networkInterfaces()): Interfaces {
  const all = Object.entries(listed).flatMap(([name, addresses]) =>
    (addresses ?? []).map((address): Candidate => ({ name, ...address })),
  );
  const list = parseNameList(wishes.names);
  // Who excludes interfaces does not think of loopback, by which no other host is reached.
  const isMeant = ({ name, internal }: Candidate): boolean =>
    list !== null && admits(list, name) && !(list.excludes && internal);
  const named = list === null ? usual(all) : all.filter(isMeant);
  const ofFamily = named.filter(isOfFamily(wishes.family));
  const global = ofFamily.filter(({ address }) => !LINK_LOCAL.test(address));
  const isNamed = list !== null && !list.excludes;
  return {
    nics: (global.length > 0 ? global : ofFamily).map((one) => nicOf(one, root, isNamed)),
    problem: problemOf(wishes, all, named, ofFamily),
  };
}

type Candidate = NetworkInterfaceInfo & { readonly name: string };

/** They need a scope, and no router passes them on. */
const LINK_LOCAL = /^(?:fe[89ab][0-9a-f]:|169\.254\.)/iu;

/** Which interfaces are used where the user names none: the first of these groups that has any. */
const GROUPS: readonly ((name: string, internal: boolean) => boolean)[] = [
  (name, internal) => !internal && !/^(?:docker|virbr)/u.test(name),
  (name) => name.startsWith('docker'),
  (_name, internal) => internal,
  (name) => name.startsWith('virbr'),
];

function usual(all: readonly Candidate[]): Candidate[] {
  for (const group of GROUPS) {
    const found = all.filter(({ name, internal }) => group(name, internal));
    if (found.length > 0) return found;
  }
  return [];
}

const FAMILIES = new Map([
  ['AF_INET', 'IPv4'],
  ['AF_INET6', 'IPv6'],
]);

function isOfFamily(wanted: string | undefined): (candidate: Candidate) => boolean {
  const family = FAMILIES.get(wanted?.trim() ?? '');
  return (candidate) => family === undefined || candidate.family === family;
}

function nicOf({ name, address, cidr, family, scopeid }: Candidate, root: string, isNamed: boolean): HostNic {
  const device = deviceOf(root, name);
  const isScoped = family === 'IPv6' && (scopeid ?? 0) > 0;
  return {
    name,
    address: isScoped ? `${address}%${name}` : address,
    prefixLength: Number(cidr?.split('/')[1] ?? 0),
    speedMbps: reportedSpeed(root, name),
    pciPath: device === null ? null : `/${device}`,
    isVirtual: !isReal(root, name),
    isNamed,
  };
}

function problemOf(
  { names, family }: InterfaceWishes,
  all: readonly Candidate[],
  named: readonly Candidate[],
  ofFamily: readonly Candidate[],
): string | null {
  const isUnknown = family !== undefined && family.trim() !== '' && !FAMILIES.has(family.trim());
  if (isUnknown) return `NCCL_SOCKET_FAMILY=${family}: AF_INET or AF_INET6 is wanted`;
  const there = listOf(all);
  if (named.length === 0 && parseNameList(names) !== null)
    return `NCCL_SOCKET_IFNAME=${names} names no network interface of this host that is up and has an address; it has ${there}`;
  if (ofFamily.length > 0 || named.length === 0) return null;
  return `NCCL_SOCKET_FAMILY=${family}: no interface that may be used has such an address; this host has ${there}`;
}

/** "eth0 (10.0.0.1, fd00::1), lo (127.0.0.1)". */
function listOf(all: readonly Candidate[]): string {
  const addresses = Map.groupBy(all, ({ name }) => name);
  const parts = Array.from(addresses, ([name, its]) => `${name} (${its.map(({ address }) => address).join(', ')})`);
  return parts.length === 0 ? 'none' : parts.join(', ');
}
