/**
 * Chooses the InfiniBand or RoCE ports by which the hosts of a communicator reach each other: NCCL_IB_HCA among those that are active, and of
 * each port the GID. Ports of one index, in the order of their cards, are a rail.
 */
import type { HostGid, HostVerbsPort } from '../../messages/nic.ts';
import { admits, parseNameList } from '../../name-list.ts';
import type { PlanNic } from '../../plan/network.ts';
import type { PlannedHost } from '../input/input.ts';
import type { Environment } from '../input/variables.ts';
import { valueOf } from '../input/variables.ts';
import { GID_VARIABLES, gidOf } from './gids.ts';
import { whyVerbsAreUnwanted } from './verbs-wanted.ts';
import type { ChosenNics } from './nics.ts';

type VerbsHost = Pick<PlannedHost, 'name' | 'verbs'>;
interface Usable {
  readonly port: HostVerbsPort;
  readonly gid: string;
}

/** The GID by which a job would use an active port; a string is why it would not: a clause without its end. Throws UnplannableError. */
export function chosenGid(port: HostVerbsPort, environment: Environment): HostGid | string {
  const refused = whyVerbsAreUnwanted(environment);
  if (refused !== null) return refused;
  const named = valueOf(environment, 'NCCL_IB_HCA');
  const list = parseNameList(named ?? undefined);
  if (list !== null && !admits(list, port.card, port.port)) return `not in NCCL_IB_HCA=${named}`;
  return gidOf(port, environment) ?? 'no GID of the wanted kind';
}

/** A string is why the hosts cannot reach each other so: a clause without its end. Throws UnplannableError for a wrong variable. */
export function chooseVerbs(hosts: readonly VerbsHost[], environment: Environment): ChosenNics | string {
  const refused = whyVerbsAreUnwanted(environment);
  if (refused !== null) return refused;
  const usable: Usable[][] = [];
  for (const { name, verbs } of hosts) {
    if (verbs === undefined || verbs === null) return `${name} did not say which InfiniBand devices it has`;
    if (verbs.problem !== null) return `${name}: ${verbs.problem}`;
    const its = usablePorts(verbs.ports, environment);
    if (its.length === 0) return `${name}: ${whyNone(verbs.ports, environment)}`;
    usable.push(its);
  }
  const shared = LINK_LAYERS.map((layer) => ofLayer(hosts, usable, layer)).filter(({ rails }) => rails > 0);
  const [fastest] = shared.toSorted((one, other) => other.speedMbps - one.speedMbps);
  if (fastest === undefined) return unlikeKinds(hosts, usable);
  const { layer, ports, rails, fewest } = fastest;
  const leftOut = hosts.flatMap(({ name }, host) => {
    const others = (usable[host] ?? []).filter(({ port }) => port.linkLayer !== layer);
    return others.length === 0 ? [] : [`${name} leaves out ${others.map(({ port }) => portText(port)).join(', ')}`];
  });
  const isFaster = shared.some(({ speedMbps }) => speedMbps < fastest.speedMbps);
  const why =
    shared.length > 1
      ? `${KINDS[layer]} is ${isFaster ? 'faster' : 'as fast'}`
      : `not all hosts have ${KINDS[otherLayer(layer)]}`;
  const shown = leftOut.slice(0, SHOWN_HOSTS).join('; ');
  return {
    nics: ports.map((its) => its.slice(0, rails).map(planNic)),
    reason: `${fewest} has ${activePorts(rails, layer)}${leftOut.length === 0 ? '' : `; ${shown}: ${why}`}`,
  };
}

type LinkLayer = HostVerbsPort['linkLayer'];
/** Of equally fast ones the first is taken. */
const LINK_LAYERS: readonly LinkLayer[] = ['InfiniBand', 'Ethernet'];
const KINDS: Readonly<Record<LinkLayer, string>> = { InfiniBand: 'InfiniBand', Ethernet: 'RoCE' };
const SHOWN_HOSTS = 4;

interface OfLayer {
  readonly layer: LinkLayer;
  /** By host. */
  readonly ports: readonly (readonly Usable[])[];
  /** 0: a host has none. */
  readonly rails: number;
  /** The host with fewest. */
  readonly fewest: string | undefined;
  /** Of the rails of the slowest host together. */
  readonly speedMbps: number;
}

function ofLayer(hosts: readonly VerbsHost[], usable: readonly (readonly Usable[])[], layer: LinkLayer): OfLayer {
  const ports = usable.map((its) => its.filter(({ port }) => port.linkLayer === layer));
  const rails = Math.min(...ports.map(({ length }) => length));
  const fewest = hosts[ports.findIndex(({ length }) => length === rails)]?.name;
  const speeds = ports.map((its) => its.slice(0, rails).reduce((sum, { port }) => sum + port.speedMbps, 0));
  return { layer, ports, rails, fewest, speedMbps: Math.min(...speeds) };
}

function unlikeKinds(hosts: readonly VerbsHost[], usable: readonly (readonly Usable[])[]): string {
  const lacking = LINK_LAYERS.map((layer) => {
    const host = usable.findIndex((its) => its.every(({ port }) => port.linkLayer !== layer));
    return `${hosts[host]?.name} has no active ${KINDS[layer]} port`;
  });
  return lacking.join(', ');
}

function otherLayer(layer: LinkLayer): LinkLayer {
  return layer === 'Ethernet' ? 'InfiniBand' : 'Ethernet';
}

function activePorts(count: number, layer: LinkLayer): string {
  return `${count} active ${KINDS[layer]} ${count === 1 ? 'port' : 'ports'}`;
}

function portText({ card, port }: HostVerbsPort): string {
  return `${card}:${port}`;
}

function usablePorts(ports: readonly HostVerbsPort[], environment: Environment): Usable[] {
  const list = parseNameList(valueOf(environment, 'NCCL_IB_HCA') ?? undefined);
  const admitted = ports.filter(({ card, port }) => list === null || admits(list, card, port));
  return byPlace(admitted).flatMap((port) => {
    const gid = gidOf(port, environment);
    return gid === null ? [] : [{ port, gid: gid.gid }];
  });
}

function whyNone(ports: readonly HostVerbsPort[], environment: Environment): string {
  const there = ports.map(portText).join(', ');
  const named = valueOf(environment, 'NCCL_IB_HCA');
  const list = parseNameList(named ?? undefined);
  const isNamed = list === null || ports.some(({ card, port }) => admits(list, card, port));
  if (!isNamed) return `NCCL_IB_HCA=${named} names no active port; it has ${there}`;
  return `no GID of ${there} is of the kind that ${GID_VARIABLES} ask for`;
}

function placeOf({ pciPath, card, port }: HostVerbsPort): string {
  return `${pciPath ?? ''} ${card} ${String(port).padStart(3, '0')}`;
}

function byPlace(ports: readonly HostVerbsPort[]): HostVerbsPort[] {
  const at = new Map(ports.map((port) => [placeOf(port), port]));
  return [...at.keys()].toSorted().flatMap((place) => at.get(place) ?? []);
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
