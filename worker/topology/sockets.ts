/** Network interfaces, as nets for the socket transport. */
import { basename } from 'node:path';
import { admits, parseNameList } from '../../control/name-list.ts';
import type { NetFacts } from './facts.ts';
import { listDirectory, readText } from './system-files.ts';
import { realPath } from './walk.ts';

const INTERFACES = 'sys/class/net';
/** Speed in Mbit/s if the driver reports none, as in NCCL's socket transport. */
const UNKNOWN_SPEED = 10_000;
const MAX_CONNECTIONS = 65_536;
/** Bridges of containers and virtual machines; nothing of another host is behind them. */
const INNER = /^(?:lo|docker|virbr)/u;

/**
 * `chosen`: NCCL_SOCKET_IFNAME. Without it InfiniBand's interfaces, else those with a device of their own and bonds of such; only where
 * there are none (in a container, say) virtual ones. Those that are down are left out.
 */
export function socketNets(root: string, chosen: string | undefined): NetFacts[] {
  return interfaces(root, chosen).map((name, index) => ({
    name,
    path: deviceOf(root, name),
    port: 0,
    speed: reportedSpeed(root, name) || UNKNOWN_SPEED,
    latency: '0',
    guid: `0x${index.toString(16)}`,
    maxConnections: MAX_CONNECTIONS,
    gpuDirect: false,
  }));
}

function interfaces(root: string, chosen: string | undefined): string[] {
  const up = listDirectory(root, INTERFACES)
    .filter((name) => isUp(root, name))
    .toSorted((one, other) => indexOf(root, one) - indexOf(root, other) || (one < other ? -1 : 1));
  const list = parseNameList(chosen);
  if (list !== null) return up.filter((name) => admits(list, name));
  const outer = up.filter((name) => !INNER.test(name) && !isPartOfBond(root, name));
  const infiniband = outer.filter((name) => name.startsWith('ib'));
  if (infiniband.length > 0) return infiniband;
  const real = outer.filter((name) => isReal(root, name));
  return real.length > 0 ? real : outer;
}

function isUp(root: string, name: string): boolean {
  // Drivers without link detection report "unknown"; a file beside the interfaces (bonding_masters) has no state.
  return ['up', 'unknown'].includes(readText(root, `${INTERFACES}/${name}/operstate`));
}

/** Real path of its device; null: it has none. */
export function deviceOf(root: string, name: string): string | null {
  return realPath(root, `${INTERFACES}/${name}/device`);
}

/** Whether a device of its own or a bond of such is behind it. */
export function isReal(root: string, name: string): boolean {
  return deviceOf(root, name) !== null || realPath(root, `${INTERFACES}/${name}/bonding`) !== null;
}

function isPartOfBond(root: string, name: string): boolean {
  const above = realPath(root, `${INTERFACES}/${name}/master`);
  return above !== null && realPath(root, `${INTERFACES}/${basename(above)}/bonding`) !== null;
}

function indexOf(root: string, name: string): number {
  return Number.parseInt(readText(root, `${INTERFACES}/${name}/ifindex`), 10) || 0;
}

/** Mbit/s; 0: the driver reports none. */
export function reportedSpeed(root: string, name: string): number {
  const speed = Number.parseInt(readText(root, `${INTERFACES}/${name}/speed`), 10);
  return speed > 0 ? speed : 0;
}
