/** The network of a communicator: which NICs its hosts use, and how. */
import { NO_VERBS_DEVICES } from '../../messages/nic.ts';
import type { HostNic } from '../../messages/nic.ts';
import { usesNetwork } from '../../plan/network.ts';
import type { PlanNetwork, PlanNic } from '../../plan/network.ts';
import type { CommPlan } from '../../plan/types.ts';
import { rankNumbersByHost } from '../input/input.ts';
import type { PlanInput } from '../input/input.ts';
import { UnplannableError } from '../input/check.ts';
import { networkReductionOf } from '../input/network-reduction.ts';
import type { AggregatorPlace, NetworkReduction } from '../input/network-reduction.ts';
import type { Environment } from '../input/variables.ts';
import { valueOf } from '../input/variables.ts';
import { withoutScope } from './addresses.ts';
import { chooseNics } from './nics.ts';
import { unknownGpuNics } from './unknown-gpu-nics.ts';
import type { GpuNic } from '../../plan/gpu-nics.ts';
import type { ChosenNics } from './nics.ts';
import { socketsOf } from './sockets.ts';
import { chooseVerbs } from './verbs.ts';
import { whyVerbsAreUnwanted } from './verbs-wanted.ts';

export interface BoundNetwork {
  readonly network: PlanNetwork | null;
  /** By host; all hosts have the same number. */
  readonly nics: readonly (readonly PlanNic[])[];
  /** By host: which cards may use GPUDirect. */
  readonly gpuNics: readonly (readonly GpuNic[])[];
}

/** The backend that every host has, and the one for InfiniBand and RoCE. */
export const SOCKETS = 'Socket';
const VERBS = 'IB';
/** Verbs have no sockets to share a load among. */
const ONE_CONNECTION = { sockets: 1, socketThreads: 0 };
/** What the times of a network depend on. */
export interface NetworkFacts extends PlanNetwork {
  /** NICs of each host. */
  readonly rails: number;
  /** Of the slowest NIC; 0: unknown. */
  readonly speedMbps: number;
  /** One machine plays all hosts. */
  readonly isOneMachine: boolean;
  readonly reduction: NetworkReduction;
  /** Of the slowest NIC by which ranks reach aggregators: by sockets, whatever the network; 0: unknown. */
  readonly socketMbps: number;
}

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

export interface NicsBetween extends ChosenNics {
  readonly backend: string;
  /** Why it is not InfiniBand, though some host has a card or a variable forbids it: a clause without its end. null: it is, or neither holds. */
  readonly whyNotVerbs: string | null;
}

/** null: one host. Throws UnplannableError. */
export function nicsBetween({ hosts }: PlanInput, environment: Environment): NicsBetween | null {
  if (hosts.length < 2) return null;
  const verbs = chooseVerbs(hosts, environment);
  if (typeof verbs !== 'string') return { ...verbs, backend: VERBS, whyNotVerbs: null };
  // A plugin may have that name too, and only the engine knows.
  const hasPlugin = !['', 'none'].includes(valueOf(environment, 'NCCL_NET_PLUGIN') ?? '');
  if (valueOf(environment, 'NCCL_NET')?.toUpperCase() === VERBS && !hasPlugin)
    throw new UnplannableError(`NCCL_NET=${VERBS}: the hosts cannot reach each other so: ${verbs}`);
  // Hosts are not asked for cards that nobody wants.
  const isWorthSaying = hosts.some(hasCards) || whyVerbsAreUnwanted(environment) !== null;
  return { ...chooseNics(hosts), backend: SOCKETS, whyNotVerbs: isWorthSaying ? verbs : null };
}

/** Throws UnplannableError for a variable. */
export function networkFacts(input: PlanInput, { nics, backend }: NicsBetween, environment: Environment): NetworkFacts {
  const facts = factsOf(input, nics);
  const wanted = ['NCCL_NET', 'NCCL_NET_PLUGIN'].flatMap((name) => valueOf(environment, name) ?? []);
  return {
    name: wanted.length === 0 ? backend : wanted.join(' '),
    ...(backend === VERBS ? ONE_CONNECTION : socketsOf(facts, environment)),
    rails: nics[0]?.length ?? 0,
    speedMbps: facts.speedMbps,
    isOneMachine: (nics[0] ?? []).every((first, rail) => nics.every((own) => own[rail]?.address === first.address)),
    reduction: networkReductionOf(placesOf(input), input.hosts.length, environment),
    socketMbps: Math.min(...input.hosts.map(socketSpeedOf)),
  };
}

/** Of the NIC that the host is reached by. */
function socketSpeedOf({ address, nics = [] }: PlanInput['hosts'][number]): number {
  return nics.find((nic) => withoutScope(nic.address) === withoutScope(address))?.speedMbps ?? 0;
}

function placesOf({ aggregators }: PlanInput): AggregatorPlace[] {
  return (aggregators?.servers ?? []).map(({ runsOn }) => runsOn);
}

/** A card whose ports are all down counts, too. */
function hasCards({ verbs }: PlanInput['hosts'][number]): boolean {
  return (verbs?.ports.length ?? 0) > 0 || (verbs?.problem ?? NO_VERBS_DEVICES) !== NO_VERBS_DEVICES;
}

/**
 * "network Socket, NICs: a uses eth0, eth1; b uses eth0, eth1: there is one in each of 2 subnets on every host; not IB: b: no port is
 * active"; of many hosts the first ones.
 */
export function describeNics({ hosts }: PlanInput, { nics, reason, backend, whyNotVerbs }: NicsBetween): string {
  const shown = hosts
    .slice(0, DESCRIBED_HOSTS)
    .map(({ name }, host) => `${name} uses ${(nics[host] ?? []).map(describeNic).join(', ')}`);
  const more = hosts.length > shown.length ? `; ${hosts.length - shown.length} more hosts likewise` : '';
  const otherwise = whyNotVerbs === null ? '' : `; not ${VERBS}: ${whyNotVerbs}`;
  return `network ${backend}, NICs: ${shown.join('; ')}${more}: ${reason}${otherwise}`;
}

/**
 * "network IB between hosts: mlx5_0 port 1, mlx5_0 port 2: host0 has 2 active RoCE ports; each rank receives by 2 of them": of hosts that are all
 * like the first one, whose addresses mean nothing.
 */
export function describeOneHost(input: PlanInput, { nics, reason, backend, whyNotVerbs }: NicsBetween): string {
  const own = nics[0] ?? [];
  const names = own.map(({ name, port }) => (port === 0 ? name : `${name} port ${port}`)).join(', ');
  const ranks = Math.max(...rankNumbersByHost(input).map(({ length }) => length));
  const each =
    own.length > ranks ? `; each rank's channels take ${Math.floor(own.length / ranks)} of them in turn` : '';
  const otherwise = whyNotVerbs === null ? '' : `; not ${VERBS}: ${whyNotVerbs}`;
  return `network ${backend} between hosts: ${names}: ${reason}${each}${otherwise}`;
}

/** "eth0 (10.0.0.1)", "mlx5_0 port 1 (GID fe80::1, 400 Gb/s)" */
function describeNic({ name, address, port, speedMbps }: PlanNic): string {
  if (port === 0) return name === address ? name : `${name} (${address})`;
  return `${name} port ${port} (GID ${address}, ${speedMbps / 1000} Gb/s)`;
}

const DESCRIBED_HOSTS = 8;

/** `decided.network`: of a plan that a user wrote; it says how its network is used, where the hosts have that one. Throws UnplannableError. */
export function bindNetwork(
  input: PlanInput,
  between: NicsBetween | null,
  decided: Pick<CommPlan, 'transports'> & { readonly network?: PlanNetwork | null },
  environment: Environment,
): BoundNetwork {
  if (!usesNetwork({ ...input, transports: decided.transports }))
    return { network: null, nics: input.hosts.map(() => []), gpuNics: [] };
  const { nics }: ChosenNics = between ?? chooseNics([{ name: '', address: LOOPBACK.address, nics: [LOOPBACK] }]);
  const given = decided.network?.name === (between?.backend ?? SOCKETS) ? decided.network : null;
  return {
    network: given ?? networkOf(between, factsOf(input, nics), environment),
    nics,
    gpuNics: gpuNicsOfHosts(input, environment),
  };
}

function networkOf(
  between: NicsBetween | null,
  facts: Parameters<typeof socketsOf>[0],
  environment: Environment,
): PlanNetwork {
  if (between?.backend === VERBS) return { name: VERBS, ...ONE_CONNECTION };
  return { name: SOCKETS, ...socketsOf(facts, environment) };
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
