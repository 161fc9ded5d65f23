/** What a plan decides for the GPUs of one host. */
import type { Agreement } from '../cluster/agreement.ts';
import { situationOf } from '../cluster/situation.ts';
import { rankCountByGpu } from '../input/input.ts';
import type { PlanInput } from '../input/input.ts';
import type { Decisions } from '../plan.ts';
import type { Preferences } from '../input/preferences.ts';
import { generationOf, DEFAULT_LINK_BANDWIDTH } from '../tuning/constants.ts';
import { countByHost, hasRails } from '../../plan/possible.ts';
import type { Situation } from '../tuning/network.ts';
import type { ChannelSet } from '../channel-set.ts';
import { gpuBuffersFor, isLater } from './gpu-buffers.ts';
import { tuningBetweenHosts } from './gpu-hosts.ts';
import { channelsOfMessage, tuningOnGpus } from './gpu-tuning.ts';

/** Blocks that the largest sizes use: so many of 512 threads fill what NVLinks carry (2 × H200). */
const MAX_CHANNELS = 64;
/** Between hosts, where a block that waits for the network keeps its SM from other work. */
const MAX_CHANNELS_BETWEEN_HOSTS = 16;
/** All blocks of a launch wait for peers, so each needs an SM, and so do those of another communicator's launch beside them. */
const LAUNCHES_AT_ONCE = 2;
/** One in so many channels is left to copies that a rank makes for itself while it sends and receives. */
const COPYING = 5;
const SPIN_NANOSECONDS = 50_000;

export function decideOnGpus(input: PlanInput, channelSet: ChannelSet, preferences: Preferences): Decisions {
  const together = LAUNCHES_AT_ONCE * Math.max(...rankCountByGpu(input.peers).values());
  const limits = input.peers.map(({ smCount, maxChannels }) =>
    Math.min(maxChannels === 0 ? MAX_CHANNELS : maxChannels, Math.floor(smCount / together)),
  );
  const isBetweenHosts = input.hosts.length > 1;
  const max = isBetweenHosts ? MAX_CHANNELS_BETWEEN_HOSTS : MAX_CHANNELS;
  const channels = Math.max(1, Math.min(max, preferences.channels.max, ...limits));
  const copyChannels = Math.max(1, Math.floor(channels / COPYING));
  const ranks = input.peers.length;
  const situation = decisionSituation(channelSet, input, channels);
  const buffers = gpuBuffersFor({
    ranks,
    hosts: input.hosts.length,
    channels,
    localRanks: countByHost(input.peers, input.hosts.length).maxRanks,
    rails: hasRails('cuda', situation),
    messageChannels: channelsOfMessage('sendRecv', ranks, channels - copyChannels),
    isLater: isLater(input.peers),
  });
  const { pairChannels } = buffers.gpuBuffers;
  const budget = { ranks, channels, copyChannels, pairChannels, minChannels: preferences.channels.min };
  return {
    device: 'cuda',
    channels: channelSet.channels(channels),
    transports: { sameHost: preferences.gpusReachEachOther ? 'p2p' : 'shm', otherHost: 'socket' },
    ...buffers,
    tuning: (isBetweenHosts ? tuningBetweenHosts : tuningOnGpus)(situation, budget, preferences),
    copyChannels,
    spinNanoseconds: SPIN_NANOSECONDS,
  };
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
    generation: generationOf(0),
    processors: 'other',
    ring: none,
    tree: none,
    hasPlainTree: false,
    collnet: null,
    linkBandwidth: DEFAULT_LINK_BANDWIDTH,
    blocks,
  };
}
