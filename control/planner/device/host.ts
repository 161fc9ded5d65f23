/** What a plan decides for ranks on processors. */
import { countByHost } from '../../plan/possible.ts';
import type { PlanInput } from '../input/input.ts';
import type { Decisions } from '../plan.ts';
import type { Preferences } from '../input/preferences.ts';
import type { ChannelSet } from '../channel-set.ts';
import {
  pairBufferOf,
  RING_BUFFER,
  SHARED_CORE_SPIN_NANOSECONDS,
  SPIN_BETWEEN_HOSTS_NANOSECONDS,
  SPIN_NANOSECONDS,
} from './host-constants.ts';
import { withPredictions } from './host-prediction.ts';
import { hostTuning } from './host-tuning.ts';

/** Default number of channels: the traffic of two ranks fills one; NCCL_MIN_NCHANNELS asks for more. */
const CHANNELS = 1;

/** `rails`: NICs of each host, of which each needs a channel to carry its part of the load. */
export function decideOnHosts(
  input: PlanInput,
  channelSet: ChannelSet,
  preferences: Preferences,
  rails: number,
): Decisions {
  const channels = Math.min(Math.max(CHANNELS, rails, preferences.channels.min), preferences.channels.max);
  const ranks = input.peers.length;
  const hosts = input.hosts.length;
  const { ranksOfEachHost } = countByHost(input.peers, hosts);
  return {
    device: 'host',
    channels: channelSet.channels(channels),
    transports: { sameHost: 'shm', otherHost: 'socket' },
    ringBuffer: RING_BUFFER,
    pairBuffer: pairBufferOf(ranks),
    gpuBuffers: null,
    tuning: withPredictions(hostTuning({ ranks, hosts, ranksOfEachHost, channels }, preferences), {
      ranks,
      hosts,
      ranksPerCore: ranksPerCore(input),
    }),
    copyChannels: 1,
    spinNanoseconds: spinNanosecondsOf(input),
  };
}

function spinNanosecondsOf(input: PlanInput): number {
  const load = ranksPerCore(input);
  if (load > 1) return Math.round(SHARED_CORE_SPIN_NANOSECONDS / load);
  return input.hosts.length > 1 ? SPIN_BETWEEN_HOSTS_NANOSECONDS : SPIN_NANOSECONDS;
}

/** Of the host that has most. */
function ranksPerCore(input: PlanInput): number {
  const ranksOf = new Uint32Array(input.hosts.length);
  for (const { host } of input.peers) ranksOf[host] = (ranksOf[host] ?? 0) + 1;
  return input.hosts.reduce((max, { cores }, host) => Math.max(max, (ranksOf[host] ?? 0) / cores), 0);
}
