/** What an agent finds out about its host for its hello. Cheap: a few small files, no process. */
import { readlinkSync } from 'node:fs';
import { availableParallelism, hostname, networkInterfaces } from 'node:os';
import { clockId } from '../../control/clock-id.ts';
import type { HostNic, HostVerbs } from '../../control/messages/nic.ts';
import { UNKNOWN_HARDWARE } from '../../control/messages/hardware.ts';
import type { HostHardware } from '../../control/messages/hardware.ts';
import type { HostTopology } from '../../control/messages/topology.ts';
import type { Native } from '../engine/native.ts';
import { preflightFacts } from './preflight.ts';
import { visibleGpus } from '../topology/gpus.ts';
import { hostHardware } from '../topology/hardware-names.ts';
import { hostTopology } from '../topology/host-topology.ts';
import { findInterfaces } from '../topology/interfaces.ts';
import type { InterfaceWishes } from '../topology/interfaces.ts';
import { readText } from '../topology/system-files.ts';
import { hostVerbs } from '../topology/host-verbs.ts';

export interface HostFacts {
  /** Equal for processes of one machine, and of one container where it is in several. */
  readonly bootId: string;
  readonly clockId: string | null;
  readonly cores: number;
  readonly gpus: number;
  readonly topology: HostTopology | null;
  readonly addresses: readonly string[];
  readonly nics: readonly HostNic[];
  readonly verbs: HostVerbs | null;
  readonly launcherAddress: string | null;
  readonly preflight: Readonly<Record<string, string>>;
  readonly hardware: HostHardware;
  readonly time: number;
}

/**
 * `alone`: the job has no other host, so nobody asks for addresses, nor compares it. `topology`: somebody asks for that. `wishes`: which
 * interfaces the user wants. `native`: somebody asks for InfiniBand.
 */
export function hostFacts(
  alone: boolean,
  topology: boolean,
  wishes: InterfaceWishes = ANY_INTERFACE,
  native: Pick<Native, 'verbsPorts'> | null = null,
): HostFacts {
  const connection = sshConnection();
  const nics = alone ? [] : findInterfaces(wishes).nics;
  const verbs = alone || native === null ? null : hostVerbs(native);
  return {
    bootId: machineBoot(),
    clockId: clockId(),
    cores: availableParallelism(),
    gpus: visibleGpus().length,
    topology: topology ? hostTopology() : null,
    addresses: alone ? [] : reachableAddresses(connection?.server ?? null, nics),
    nics,
    verbs,
    launcherAddress: connection?.client ?? null,
    preflight: alone ? {} : preflightFacts('/', verbs),
    hardware: alone ? UNKNOWN_HARDWARE : hostHardware(),
    time: Date.now(),
  };
}

const ANY_INTERFACE: InterfaceWishes = { names: undefined, family: undefined };

/** SSH_CONNECTION is "client-address client-port server-address server-port". */
function sshConnection(): { client: string; server: string } | null {
  const [client, , server] = (process.env['SSH_CONNECTION'] ?? '').split(' ');
  return client !== undefined && client !== '' && server !== undefined ? { client, server } : null;
}

/** The address ssh came in at leads, then IPv4 before IPv6. */
function reachableAddresses(first: string | null, nics: readonly HostNic[]): string[] {
  const all = nics.map(({ address }) => address);
  const ordered = [
    ...all.filter((address) => !address.includes(':')),
    ...all.filter((address) => address.includes(':')),
  ];
  // Behind an address translation it is no interface's.
  const isExcluded = first !== null && isOwnAddress(first) && !all.includes(first);
  return [...new Set([...(first === null || isExcluded ? [] : [first]), ...ordered])];
}

function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((its) => its?.some((one) => one.address === address) === true);
}

/** The boot, the process namespace and the name: containers of one machine have one of the latter for themselves. */
function machineBoot(): string {
  const boot = `${readText('/', 'proc/sys/kernel/random/boot_id')} ${hostname()}`;
  try {
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return boot;
  }
}
