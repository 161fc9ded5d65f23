/** What the network of a plan must keep. */
import { MAX_AGGREGATORS } from '../messages/aggregator.ts';
import { familyOf } from './address-family.ts';
import { MAX_SOCKET_THREADS, MAX_SOCKETS, usesNetwork } from './network.ts';
import type { PlanNic } from './network.ts';
import { check, checkWhole } from './plan-error.ts';
import type { PlanAggregators, WrittenPlan } from './types.ts';

const MAX_SPEED_MBPS = 0xffff_ffff;
const MAX_RAILS = 0xfffe;

/** Of a plan whose NICs are not bound yet, only what is written down is looked at. */
export function validateNetwork(plan: WrittenPlan, isBound: boolean): void {
  const { network, hosts, peers, channels } = plan;
  if (network !== null) {
    check(network.name !== '', 'network.name: is empty');
    checkWhole('network.sockets', network.sockets, 1, MAX_SOCKETS);
    checkWhole('network.socketThreads', network.socketThreads, 0, MAX_SOCKET_THREADS);
  }
  if (!isBound) return;
  const isNeeded = usesNetwork(plan);
  check(network !== null || !isNeeded, 'network: is missing; a connection of the plan needs it');
  const rails = Math.min(...hosts.map(({ nics }) => nics.length));
  for (const [index, { name, nics }] of hosts.entries()) {
    const at = `hosts[${index}].nics`;
    check(nics.length > 0 || !isNeeded, `${at}: ${name} has none, and a connection of the plan needs one`);
    check(nics.length === 0 || network !== null, `${at}: ${name} has some, and the plan no network`);
    for (const [number, nic] of nics.entries()) validateNic(nic, `${at}[${number}]`);
  }
  for (const [index, { rail }] of channels.entries())
    checkWhole(`channels[${index}].rail`, rail ?? 0, 0, Math.max(0, rails - 1));
  for (const [rank, { pairNic }] of peers.entries()) {
    if (rails > 0) checkWhole(`peers[${rank}].pairNic`, pairNic ?? MAX_RAILS, 0, rails - 1);
    else check(pairNic === null, `peers[${rank}].pairNic: ${pairNic}, and its host has no NIC`);
  }
}

export function validateAggregators({ token, servers }: PlanAggregators): void {
  check(/^[0-9a-f]{32}$/.test(token), 'aggregators.token: expected 32 hexadecimal digits');
  checkWhole('aggregators.servers', servers.length, 1, MAX_AGGREGATORS);
  for (const [index, { address, port }] of servers.entries()) {
    const at = `aggregators.servers[${index}]`;
    check(familyOf(address) !== 0, `${at}.address: '${address}' is no numeric IPv4 or IPv6 address`);
    checkWhole(`${at}.port`, port, 1, 0xffff);
  }
}

function validateNic({ name, address, speedMbps, port }: PlanNic, at: string): void {
  check(name !== '', `${at}.name: is empty`);
  check(familyOf(address) !== 0, `${at}.address: '${address}' of ${name} is no numeric IPv4 or IPv6 address`);
  checkWhole(`${at}.speedMbps`, speedMbps, 0, MAX_SPEED_MBPS);
  checkWhole(`${at}.port`, port, 0, MAX_RAILS);
}
