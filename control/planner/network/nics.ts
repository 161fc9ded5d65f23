/**
 * Chooses the NICs by which the hosts of a communicator reach each other: the one that each host is reached by, and beside it others of the
 * same speed in subnets that all of the hosts share. NICs of one index are in one subnet: they are a rail.
 */
import type { HostNic } from '../../messages/nic.ts';
import type { PlanNic } from '../../plan/network.ts';
import { UnplannableError } from '../input/check.ts';
import type { PlannedHost } from '../input/input.ts';
import { familyOf } from '../../plan/address-family.ts';
import { isLinkLocal, subnetOf, withoutScope } from './addresses.ts';

export interface ChosenNics {
  /** By host; all hosts have the same number. */
  readonly nics: readonly (readonly PlanNic[])[];
  /** Why there are no more of them: a clause without its end. */
  readonly reason: string;
}

type NicHost = Pick<PlannedHost, 'name' | 'address' | 'nics'>;

/** Throws an UnplannableError for hosts without an address family in common. */
export function chooseNics(hosts: readonly NicHost[]): ChosenNics {
  const controls = controlNics(hosts);
  const { rails, reason } = railsOf(hosts, controls);
  return { nics: hosts.map((_, host) => rails.map((rail) => planNic(rail[host]))), reason };
}

/** Behind an address translation no interface has the address; the NIC is then named by it. */
function unknownNic(address: string): HostNic {
  return {
    name: address,
    address,
    prefixLength: 0,
    speedMbps: 0,
    pciPath: null,
    isVirtual: true,
    isNamed: false,
  };
}

function planNic(nic: HostNic = unknownNic('127.0.0.1')): PlanNic {
  const { name, address, speedMbps, pciPath } = nic;
  return {
    name,
    address,
    port: 0,
    speedMbps,
    pciPath,
    gpuDirect: false,
    gpuDirectReason: 'sockets copy through host memory',
    gpuPaths: [],
  };
}

/** By host, the NIC that it is reached by; where families differ, one of the family that all hosts have. */
function controlNics(hosts: readonly NicHost[]): HostNic[] {
  const controls = hosts.map(({ address, nics = [] }) => {
    const own = nics.find((nic) => withoutScope(nic.address) === withoutScope(address));
    return own ?? unknownNic(address);
  });
  const families = new Set(controls.map(({ address }) => familyOf(address)));
  if (families.size < 2) return controls;
  for (const family of [4, 6] as const) {
    const ofFamily = hosts.map(({ nics = [] }, host) =>
      [controls[host], ...nics].find((nic) => nic !== undefined && familyOf(nic.address) === family),
    );
    const found = ofFamily.flatMap((nic) => nic ?? []);
    if (found.length === hosts.length) return found;
  }
  // Hosts that did not say which interfaces they have may still reach each other.
  if (hosts.some(({ nics = [] }) => nics.length === 0)) return controls;
  const four = controls.findIndex(({ address }) => familyOf(address) === 4);
  const six = controls.findIndex(({ address }) => familyOf(address) === 6);
  throw new UnplannableError(
    `the hosts have no address family in common: ${hosts[four]?.name} is reached at ${controls[four]?.address}, ` +
      `${hosts[six]?.name} at ${controls[six]?.address}; give one of them an address of the other's family (NCCL_SOCKET_IFNAME and ` +
      'NCCL_SOCKET_FAMILY choose among those that there are)',
  );
}

interface Rails {
  /** Each a NIC of every host. */
  readonly rails: readonly (readonly HostNic[])[];
  readonly reason: string;
}

function railsOf(hosts: readonly NicHost[], controls: readonly HostNic[]): Rails {
  const alone = (reason: string): Rails => ({ rails: [controls], reason });
  const [first] = controls;
  if (first === undefined || hosts.length < 2) return alone('there is one host');
  const shared = subnetOfNic(first);
  const stranger = controls.findIndex((control) => control.prefixLength === 0 || subnetOfNic(control) !== shared);
  if (stranger !== -1)
    return alone(`${hosts[stranger]?.name} is reached at ${controls[stranger]?.address}, outside the others' subnet`);
  const eligible = hosts.map(({ nics = [] }, host) => bySubnet(nics, controls[host] ?? first));
  const rails: (readonly HostNic[])[] = [controls];
  let reason = `${hosts[0]?.name} has no other NIC of the same speed`;
  for (const subnet of eligible[0]?.keys() ?? []) {
    const rail = eligible.flatMap((nics) => nics.get(subnet) ?? []);
    const lacking = eligible.findIndex((nics) => !nics.has(subnet));
    // Bridges of containers have the same address on every host.
    const distinct = new Set(rail.map(({ address }) => address)).size;
    if (lacking !== -1)
      reason = `${hosts[lacking]?.name} has no NIC of the same speed in the subnet of ${rail[0]?.name}`;
    else if (distinct < rail.length) reason = `${rail[0]?.name} has an address that several hosts have`;
    else rails.push(rail);
  }
  return {
    rails,
    reason: rails.length === 1 ? reason : `there is one in each of ${rails.length} subnets on every host`,
  };
}

/** The host's other NICs that can share its load, by subnet. Of several in one subnet all traffic leaves by one, so one is enough. */
function bySubnet(nics: readonly HostNic[], control: HostNic): Map<string, HostNic> {
  const found = new Map<string, HostNic>();
  for (const nic of nics) {
    const subnet = subnetOfNic(nic);
    const isOther = subnet !== subnetOfNic(control) && nic.name !== control.name && !found.has(subnet);
    const isAlike = nic.speedMbps === control.speedMbps && familyOf(nic.address) === familyOf(control.address);
    // What is not known to be equal shares the load only where the user asks for it.
    const isSure = nic.isNamed || (nic.speedMbps > 0 && nic.isVirtual === control.isVirtual);
    if (isOther && isAlike && isSure && !isLinkLocal(nic.address)) found.set(subnet, nic);
  }
  return found;
}

function subnetOfNic({ address, prefixLength }: HostNic): string {
  return subnetOf(address, prefixLength);
}
