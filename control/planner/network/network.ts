/** The network of a communicator: which NICs its hosts use, and how. */
import type { HostNic } from '../../messages/nic.ts';
import { usesNetwork } from '../../plan/network.ts';
import type { PlanNetwork, PlanNic } from '../../plan/network.ts';
import type { CommPlan } from '../../plan/types.ts';
import { rankNumbersByHost } from '../input/input.ts';
import type { PlanInput } from '../input/input.ts';
import type { Environment } from '../input/variables.ts';
import { chooseNics } from './nics.ts';
import { unknownGpuNics } from './unknown-gpu-nics.ts';
import type { GpuNic } from '../../plan/gpu-nics.ts';
import type { ChosenNics } from './nics.ts';
import { socketsOf } from './sockets.ts';

export interface BoundNetwork {
  readonly network: PlanNetwork | null;
  /** By host; all hosts have the same number. */
  readonly nics: readonly (readonly PlanNic[])[];
  /** By host: which cards may use GPUDirect. */
  readonly gpuNics: readonly (readonly GpuNic[])[];
}

/** The backend that connects the hosts of every communicator. */
const BACKEND = 'Socket';

/** Of one host: ranks that reach each other by sockets do so by its loopback. */
const LOOPBACK: HostNic = {
  name: 'lo',
  address: '127.0.0.1',
  prefixLength: 8,
  speedMbps: 0,
  pciPath: null,
  isVirtual: true,
  isNamed: false,
};

/** null: one host. Throws UnplannableError. */
export function nicsBetween({ hosts }: PlanInput): ChosenNics | null {
  return hosts.length > 1 ? chooseNics(hosts) : null;
}

/** "a uses eth0, eth1; b uses eth0, eth1: there is one in each of 2 subnets on every host"; of many hosts the first ones. */
export function describeNics({ hosts }: PlanInput, { nics, reason }: ChosenNics): string {
  const shown = hosts.slice(0, DESCRIBED_HOSTS).map(({ name }, host) => {
    const names = (nics[host] ?? []).map((nic) =>
      nic.name === nic.address ? nic.name : `${nic.name} (${nic.address})`,
    );
    return `${name} uses ${names.join(', ')}`;
  });
  const more = hosts.length > shown.length ? `; ${hosts.length - shown.length} more hosts likewise` : '';
  return `NICs: ${shown.join('; ')}${more}: ${reason}`;
}

const DESCRIBED_HOSTS = 8;

/** `given`: of a plan that a user wrote; it says how sockets are used. Throws UnplannableError. */
export function bindNetwork(
  input: PlanInput,
  between: ChosenNics | null,
  decided: Pick<CommPlan, 'transports'> & { readonly network?: PlanNetwork | null },
  environment: Environment,
): BoundNetwork {
  if (!usesNetwork({ ...input, transports: decided.transports }))
    return { network: null, nics: input.hosts.map(() => []), gpuNics: [] };
  const { nics } = between ?? chooseNics([{ name: '', address: LOOPBACK.address, nics: [LOOPBACK] }]);
  const given = decided.network ?? null;
  return {
    network: given ?? { name: BACKEND, ...socketsOf(factsOf(input, nics), environment) },
    nics,
    gpuNics: gpuNicsOfHosts(input, environment),
  };
}

function gpuNicsOfHosts(input: PlanInput, environment: Environment): (readonly GpuNic[])[] {
  if (input.hosts.length === 1 || input.peers[0]?.device !== 'cuda') return [];
  const members = rankNumbersByHost(input);
  return input.hosts.map(({ machine }, host) => {
    const peers = (members[host] ?? []).flatMap((rank) => input.peers[rank] ?? []);
    return machine?.gpuNics?.(peers) ?? unknownGpuNics(peers.length, environment);
  });
}

function factsOf(input: PlanInput, nics: readonly (readonly PlanNic[])[]): Parameters<typeof socketsOf>[0] {
  const members = rankNumbersByHost(input);
  return {
    onGpus: input.peers[0]?.device === 'cuda',
    speedMbps: Math.min(...nics.flat().map(({ speedMbps }) => speedMbps)),
    coresPerRank: Math.min(...input.hosts.map(({ cores }, host) => cores / Math.max(1, members[host]?.length ?? 1))),
  };
}
