/**
 * Chooses the InfiniBand or RoCE ports by which the hosts of a communicator reach each other: NCCL_IB_HCA among those that are active, and of
 * each port the GID. Ports of one index, in the order of their cards, are a rail.
 */
import type { HostGid, HostVerbsPort } from '../../messages/nic.ts';
import { admits, parseNameList } from '../../name-list.ts';
import type { PlanNic } from '../../plan/network.ts';
import { UnplannableError } from '../input/check.ts';
import type { PlannedHost } from '../input/input.ts';
import type { Environment } from '../input/variables.ts';
import { anyNumber, valueOf, wholeNumber } from '../input/variables.ts';
import { isLinkLocal } from './addresses.ts';
import type { ChosenNics } from './nics.ts';

type VerbsHost = Pick<PlannedHost, 'name' | 'verbs'>;
interface Usable {
  readonly port: HostVerbsPort;
  readonly gid: string;
}

/** The GID by which a job would use an active port; a string is why it would not: a clause without its end. Throws UnplannableError. */
export function chosenGid(port: HostVerbsPort, environment: Environment): HostGid | string {
  const refused = refusal(environment);
  if (refused !== null) return refused;
  const named = valueOf(environment, 'NCCL_IB_HCA');
  const list = parseNameList(named ?? undefined);
  if (list !== null && !admits(list, port.card, port.port)) return `not in NCCL_IB_HCA=${named}`;
  return gidOf(port, environment) ?? 'no GID of the wanted kind';
}

/** Why the user wants no InfiniBand at all; null: no variable says so. */
function refusal(environment: Environment): string | null {
  const disabled = anyNumber(environment, 'NCCL_IB_DISABLE') ?? 0;
  if (disabled !== 0) return `NCCL_IB_DISABLE=${disabled}`;
  return valueOf(environment, 'NCCL_NET')?.toLowerCase() === 'socket' ? 'NCCL_NET=Socket' : null;
}

/** A string is why the hosts cannot reach each other so: a clause without its end. Throws UnplannableError for a wrong variable. */
export function chooseVerbs(hosts: readonly VerbsHost[], environment: Environment): ChosenNics | string {
  const refused = refusal(environment);
  if (refused !== null) return refused;
  const usable: Usable[][] = [];
  for (const { name, verbs } of hosts) {
    if (verbs === undefined || verbs === null) return `${name} did not say which InfiniBand devices it has`;
    if (verbs.problem !== null) return `${name}: ${verbs.problem}`;
    const its = usablePorts(verbs.ports, environment);
    if (its.length === 0) return `${name}: ${whyNone(verbs.ports, environment)}`;
    usable.push(its);
  }
  const layers = new Set(usable.flat().map(({ port }) => port.linkLayer));
  const [layer] = layers;
  if (layers.size > 1 || layer === undefined)
    return 'some of the ports are InfiniBand and others Ethernet; choose with NCCL_IB_HCA';
  const rails = Math.min(...usable.map(({ length }) => length));
  const nics = usable.map((its) => its.slice(0, rails).map(planNic));
  const fewest = hosts[usable.findIndex(({ length }) => length === rails)]?.name;
  return { nics, reason: `${fewest} has ${rails} active ${layer === 'Ethernet' ? 'RoCE' : layer} ports` };
}

function usablePorts(ports: readonly HostVerbsPort[], environment: Environment): Usable[] {
  const list = parseNameList(valueOf(environment, 'NCCL_IB_HCA') ?? undefined);
  return ports
    .filter(({ card, port }) => list === null || admits(list, card, port))
    .toSorted((one, other) => compare(placeOf(one), placeOf(other)))
    .flatMap((port) => {
      const gid = gidOf(port, environment);
      return gid === null ? [] : [{ port, gid: gid.gid }];
    });
}

function whyNone(ports: readonly HostVerbsPort[], environment: Environment): string {
  const there = ports.map(({ card, port }) => `${card}:${port}`).join(', ');
  const named = valueOf(environment, 'NCCL_IB_HCA');
  const list = parseNameList(named ?? undefined);
  const isNamed = list === null || ports.some(({ card, port }) => admits(list, card, port));
  if (!isNamed) return `NCCL_IB_HCA=${named} names no active port; it has ${there}`;
  return `no GID of ${there} is of the kind that NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY and NCCL_IB_ROCE_VERSION_NUM ask for`;
}

function placeOf({ pciPath, card, port }: HostVerbsPort): string {
  return `${pciPath ?? ''} ${card} ${String(port).padStart(3, '0')}`;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

/**
 * The GID by which others reach the port. InfiniBand has one for all purposes, and for networks of several subnets whose routers know FLIDs
 * another. RoCE has several for each address: the version that routers pass on before the other, an address of the wanted family before a
 * link-local one. As NCCL chooses them (its documentation: NCCL_IB_GID_INDEX and the variables beside it).
 */
function gidOf({ linkLayer, gids }: HostVerbsPort, environment: Environment): HostGid | null {
  const at = (index: number): HostGid | null => gids.find((one) => one.index === index) ?? null;
  const given = anyNumber(environment, 'NCCL_IB_GID_INDEX') ?? -1;
  if (given >= 0) return at(given);
  if (linkLayer === 'InfiniBand') {
    const routable = wholeNumber(environment, 'NCCL_IB_ROUTABLE_FLID_GID_INDEX', 0, 255) ?? 1;
    const other = at(routable);
    return other !== null && hasFlid(other.gid) ? other : at(0);
  }
  const version = wholeNumber(environment, 'NCCL_IB_ROCE_VERSION_NUM', 1, 2) ?? 2;
  const family = familyOf(environment);
  const ranked = gids
    .map((gid) => ({ gid, worth: worthOf(gid, version, family) }))
    .toSorted((one, other) => other.worth - one.worth);
  return ranked[0]?.gid ?? null;
}

type Family = 4 | 6;
function familyOf(environment: Environment): Family {
  const text = valueOf(environment, 'NCCL_IB_ADDR_FAMILY') ?? 'AF_INET';
  if (text === 'AF_INET') return 4;
  if (text === 'AF_INET6') return 6;
  throw new UnplannableError(`NCCL_IB_ADDR_FAMILY=${text}: AF_INET or AF_INET6 is wanted`);
}

function worthOf({ gid, version }: HostVerbsPort['gids'][number], wantedVersion: number, wantedFamily: Family): number {
  const family: Family = /^::ffff:/iu.test(gid) ? 4 : 6;
  const isWanted = version === null || version === wantedVersion;
  return (isLinkLocal(gid.replace(/^::ffff:/iu, '')) ? 0 : 4) + (isWanted ? 2 : 0) + (family === wantedFamily ? 1 : 0);
}

/** Its third group of digits is the number of a subnet's router (FLID), and not 0. */
function hasFlid(gid: string): boolean {
  const [before = ''] = gid.split('::');
  return Number.parseInt(before.split(':')[2] ?? '0', 16) !== 0;
}

function planNic({ port: { card, port, speedMbps, pciPath }, gid }: Usable): PlanNic {
  return {
    name: card,
    address: gid,
    port,
    speedMbps,
    pciPath,
    gpuDirect: false,
    gpuDirectReason: 'not decided',
    gpuPaths: [],
  };
}
