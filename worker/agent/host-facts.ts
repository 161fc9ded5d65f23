/** What an agent finds out about its host for its hello. Cheap: a few small files, no process. */
import { availableParallelism, networkInterfaces } from 'node:os';
import type { HostTopology } from '../../control/messages/topology.ts';
import { preflightFacts } from './preflight.ts';
import { visibleGpus } from '../topology/gpus.ts';
import { hostTopology } from '../topology/host-topology.ts';
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

/** `alone`: the job has no other host, so nobody asks for addresses, nor compares it. `topology`: somebody asks for that. */
export function hostFacts(alone: boolean, topology: boolean): HostFacts {
  const connection = sshConnection();
  return {
    bootId: readText('/', 'proc/sys/kernel/random/boot_id'),
    cores: availableParallelism(),
    gpus: visibleGpus().length,
    topology: topology ? hostTopology() : null,
    addresses: alone ? [] : reachableAddresses(connection?.server ?? null),
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

/** The address ssh came in at leads, then IPv4 before IPv6; no loopback, no link-local ones (they need a scope). */
function reachableAddresses(first: string | null): string[] {
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address));
  const ofFamily = (family: string) => found.filter((one) => one.family === family).map(({ address }) => address);
  return [...new Set([...(first === null ? [] : [first]), ...ofFamily('IPv4'), ...ofFamily('IPv6')])];
}
