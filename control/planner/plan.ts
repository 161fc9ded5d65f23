/** The planner: computes a CommPlan from ranks and hosts. Deterministic, and pure apart from its cache. */
import { startOfHost } from '../plan/channel-tables.ts';
import { COPY_TIMEOUTS } from '../plan/types.ts';
import { pairNicOf } from '../plan/network.ts';
import type { CommPlan, GivenChannel, TransportName, TuningRow, UnboundChannel } from '../plan/types.ts';
import { checkGpuCount } from './input/check.ts';
import { withMessages } from './device/gpu-tuning.ts';
import { decideOnGpus } from './device/gpus.ts';
import { decideOnHosts } from './device/host.ts';
import { rankNumbersByHost } from './input/input.ts';
import type { Members, PlanInput } from './input/input.ts';
import type { Preferences } from './input/preferences.ts';
import { channelSetOf, plainChannel } from './channel-set.ts';
import type { Situation } from './tuning/situation.ts';
import type { BoundNetwork, NetworkFacts } from './network/network.ts';

/** What a plan decides; it depends on the shape alone, so equal shapes are decided once. */
export type Decisions = Pick<
  CommPlan,
  'device' | 'transports' | 'ringBuffer' | 'pairBuffer' | 'gpuBuffers' | 'tuning' | 'copyChannels' | 'spinNanoseconds'
> & {
  readonly channels: readonly UnboundChannel[];
  /** What times between hosts were predicted for; absent: there is one host, or a user wrote the plan. */
  readonly situation?: Situation;
} & Partial<Pick<CommPlan, 'smsPerLaunch' | 'copyTimeouts' | 'network'>>;

/** Decisions made for a shape, with the ranks, hosts and NICs that are really there. */
export function bindPlan(input: PlanInput, decisions: Decisions, { network, nics, gpuNics }: BoundNetwork): CommPlan {
  const rails = nics[0]?.length ?? 0;
  const localIndex = localIndices(input);
  const members = rankNumbersByHost(input);
  return {
    formatVersion: 1,
    device: decisions.device,
    peers: input.peers.map(({ host, listenPort }, rank) => ({
      host,
      listenPort,
      pairNic: pairNicOf(localIndex[rank] ?? 0, members[host]?.length ?? 0, rails),
    })),
    hosts: input.hosts.map(({ name, address }, host) => ({
      name,
      address,
      nics: nics[host] ?? [],
      gpuNics: gpuNics[host] ?? [],
    })),
    channels: decisions.channels.map(({ ring, tree, rail }, channel) => ({
      ring,
      tree,
      rail: rails === 0 ? 0 : (rail ?? channel) % rails,
    })),
    transports: overNetwork(decisions.transports, network),
    network,
    ringBuffer: decisions.ringBuffer,
    pairBuffer: decisions.pairBuffer,
    gpuBuffers: decisions.gpuBuffers,
    tuning: decisions.tuning,
    copyChannels: decisions.copyChannels,
    smsPerLaunch: decisions.smsPerLaunch ?? decisions.channels.length,
    copyTimeouts: decisions.copyTimeouts ?? COPY_TIMEOUTS,
    spinNanoseconds: decisions.spinNanoseconds,
    token: input.token,
    aggregators: decisions.tuning.some(usesNetworkReduction) ? reachedBy(input) : null,
  };
}

function reachedBy({ aggregators }: PlanInput): CommPlan['aggregators'] {
  if (aggregators == null) return null;
  return { ...aggregators, servers: aggregators.servers.map(({ address, port }) => ({ address, port })) };
}

function usesNetworkReduction({ variants }: TuningRow): boolean {
  return variants.some(({ requires }) => requires.includes('networkReduction'));
}

/** Decisions say where a network is used; which one it is depends on the hosts. */
function overNetwork(transports: CommPlan['transports'], network: CommPlan['network']): CommPlan['transports'] {
  if (network === null) return transports;
  const over = (one: TransportName): TransportName => {
    if (one !== 'socket' && one !== 'ib') return one;
    return network.name === 'IB' ? 'ib' : 'socket';
  };
  return { sameHost: over(transports.sameHost), otherHost: over(transports.otherHost) };
}

/** By rank: its index among the ranks of its host. */
function localIndices({ hosts, peers }: Members): number[] {
  const seen = hosts.map(() => 0);
  return peers.map(({ host }) => {
    const index = seen[host] ?? 0;
    seen[host] = index + 1;
    return index;
  });
}

/** `network`: between the hosts; null: there is one. Throws UnplannableError where no plan is possible. */
export function decide(input: PlanInput, preferences: Preferences, network: NetworkFacts | null): Decisions {
  const channelSet = channelSetOf(input);
  const onGpus = input.peers[0]?.device === 'cuda';
  if (onGpus) checkGpuCount(input);
  const shape = { input, channelSet, preferences, network };
  const tables = input.hosts[0]?.tables;
  const corrections = tables?.corrections(onGpus ? 'cuda' : 'host', shape) ?? {};
  const decisions = (onGpus ? decideOnGpus : decideOnHosts)(shape, corrections);
  const refined = tables?.refine(decisions, shape) ?? decisions;
  if (!onGpus || input.hosts.length > 1) return refined;
  const budget = {
    ranks: input.peers.length,
    channels: refined.channels.length,
    copyChannels: refined.copyChannels,
  };
  return { ...refined, tuning: withMessages(refined.tuning, budget) };
}

/** What a person wrote, for where the ranks are: a ring goes through each host once, when it first comes to it. */
export function bindChannels({ peers, hosts }: Members, given: readonly GivenChannel[]): UnboundChannel[] {
  const plain = plainChannel(peers, rankNumbersByHost({ peers, hosts }));
  const hostOf = (rank: number): number => peers[rank]?.host ?? 0;
  return given.map(({ ring, tree, rail }) => {
    const start = startOfHost(ring, hostOf);
    const byHost = new Map<number, number[]>();
    for (const rank of [...ring.slice(start), ...ring.slice(0, start)]) {
      const there = byHost.get(hostOf(rank));
      if (there === undefined) byHost.set(hostOf(rank), [rank]);
      else there.push(rank);
    }
    return { ring: [...byHost.values()].flat(), tree: tree ?? plain.tree, rail };
  });
}
