/** What a plan decides for the GPUs of one host. */
import type { Agreement } from '../cluster/agreement.ts';
import type { PlannedCluster } from '../cluster/plan-cluster.ts';
import { situationOf } from '../cluster/situation.ts';
import { rankCountByGpu } from '../input/input.ts';
import type { PlanInput, PlannedShape } from '../input/input.ts';
import type { Decisions } from '../plan.ts';
import type { Preferences } from '../input/preferences.ts';
import type { Corrections } from '../tuning/between-costs.ts';
import { DEFAULT_LINK_BANDWIDTH } from '../tuning/constants.ts';
import type { NetworkFacts } from '../network/network.ts';
import { countByHost, hasRails } from '../../plan/possible.ts';
import type { RanksOfHosts } from '../../plan/possible.ts';
import type { Situation } from '../tuning/situation.ts';
import type { ChannelSet } from '../channel-set.ts';
import { withTerms } from './between-terms.ts';
import { gpuBuffersFor, isLater } from './gpu-buffers.ts';
import { tuningBetweenHosts } from './gpu-hosts.ts';
import { channelsOfMessage, tuningOnGpus } from './gpu-tuning.ts';
import type { ChannelBudget } from './gpu-tuning.ts';

/** Blocks that the largest sizes use: so many of 512 threads fill what NVLinks carry (2 × H200). */
const MAX_CHANNELS = 64;
/** Between hosts, where a block that waits for the network keeps its SM from other work. */
const MAX_CHANNELS_BETWEEN_HOSTS = 16;
/** All blocks of a launch wait for peers, so each needs an SM, and so do those of another communicator's launch beside them. */
const LAUNCHES_AT_ONCE = 2;
/** One in so many channels is left to copies that a rank makes for itself while it sends and receives. */
const COPYING = 5;
const SPIN_NANOSECONDS = 50_000;

/** `corrections`: what was measured of the model between such hosts. */
export function decideOnGpus(
  { input, channelSet, preferences, network }: PlannedShape,
  corrections: Corrections,
): Decisions {
  const together = LAUNCHES_AT_ONCE * Math.max(...rankCountByGpu(input.peers).values());
  const limits = input.peers.map(({ smCount, maxChannels }) =>
    Math.min(maxChannels === 0 ? MAX_CHANNELS : maxChannels, Math.floor(smCount / together)),
  );
  const wanted = {
    extent: { ranks: input.peers.length, ...countByHost(input.peers, input.hosts.length) },
    limit: Math.min(...limits),
    isLater: isLater(input.peers),
  };
  const { budget, buffers } = gpuBudget(wanted, preferences);
  const { channels, pairChannels, copyChannels } = budget;
  const situation = withTerms(decisionSituation(channelSet, input, channels), 'cuda', {
    network,
    corrections,
    channels,
    pairChannels,
    load: 1,
  });
  return {
    device: 'cuda',
    channels: channelSet.channels(channels),
    transports: { sameHost: preferences.gpusReachEachOther ? 'p2p' : 'shm', otherHost: 'socket' },
    ...buffers,
    tuning: (situation.hosts > 1 ? tuningBetweenHosts : tuningOnGpus)(situation, budget, preferences),
    copyChannels,
    spinNanoseconds: SPIN_NANOSECONDS,
    ...(situation.hosts === 1 ? {} : { situation }),
  };
}

interface WantedBudget {
  readonly extent: RanksOfHosts & { readonly ranks: number };
  /** Blocks that every GPU may give to a launch. */
  readonly limit: number;
  /** The communicator is not among its program's first ones. */
  readonly isLater: boolean;
}

/** How many channels there are, and the memory that they take. */
export function gpuBudget(
  { extent, limit, isLater: later }: WantedBudget,
  preferences: Preferences,
): { readonly budget: ChannelBudget; readonly buffers: ReturnType<typeof gpuBuffersFor> } {
  const { ranks, hosts, maxRanks } = extent;
  const most = hosts > 1 ? MAX_CHANNELS_BETWEEN_HOSTS : MAX_CHANNELS;
  const channels = Math.max(1, Math.min(most, preferences.channels.max, limit));
  const copyChannels = Math.max(1, Math.floor(channels / COPYING));
  const buffers = gpuBuffersFor({
    ranks,
    hosts,
    channels,
    localRanks: maxRanks,
    rails: hasRails('cuda', extent),
    messageChannels: channelsOfMessage('sendRecv', ranks, channels - copyChannels),
    isLater: later,
  });
  const { pairChannels } = buffers.gpuBuffers;
  return { budget: { ranks, channels, copyChannels, pairChannels, minChannels: preferences.channels.min }, buffers };
}

/** What a plan that starts nothing knows of the network, and what was measured of the model. */
interface PlannedBetween {
  readonly network: NetworkFacts | null;
  readonly corrections: Corrections;
}

/** A cluster's situation as a communicator of all its GPUs would have it. */
export function situationOnGpus(
  { cluster, situation }: PlannedCluster,
  preferences: Preferences,
  { network, corrections }: PlannedBetween,
): Situation {
  const counts = cluster.hosts.map(({ ranks }) => ranks.length);
  const maxRanks = counts.reduce((most, count) => Math.max(most, count), 0);
  const { budget } = gpuBudget({ extent: { ...situation, maxRanks }, limit: Infinity, isLater: false }, preferences);
  const { channels, pairChannels } = budget;
  return withTerms(situation, 'cuda', { network, corrections, load: 1, channels, pairChannels });
}

/** What the model is asked about. */
export function decisionSituation(
  channelSet: ChannelSet,
  { peers, hosts }: Pick<PlanInput, 'peers' | 'hosts'>,
  blocks: number,
): Situation {
  const { cluster } = channelSet;
  if (cluster !== null) return situationOf(cluster, blocks);
  const { ranksOfEachHost } = countByHost(peers, hosts.length);
  return { ...unknownMachines(peers.length, hosts.length, blocks), ranksOfEachHost };
}

/** What is not known of them does not matter inside a host, nor to what GPUs of several hosts can do. */
function unknownMachines(ranks: number, hosts: number, blocks: number): Omit<Situation, 'ranksOfEachHost'> {
  const none: Agreement = {
    channels: 1,
    inside: DEFAULT_LINK_BANDWIDTH * 1000,
    between: 0,
    typeInside: 'SYS',
    typeBetween: 'SYS',
    sameChannels: true,
    crossNic: 0,
    latencyBetween: 0,
  };
  return {
    ranks,
    hosts,
    ring: none,
    tree: none,
    collnet: null,
    linkBandwidth: DEFAULT_LINK_BANDWIDTH,
    blocks,
    nicRate: null,
    linkRate: null,
  };
}
