/** What a plan decides for ranks on processors. */
import type { PlanInput, PlannedShape } from '../input/input.ts';
import type { Decisions } from '../plan.ts';
import type { Corrections } from '../tuning/between-costs.ts';
import type { Situation } from '../tuning/situation.ts';
import { withTerms } from './between-terms.ts';
import { decisionSituation } from './gpus.ts';
import {
  pairBufferOf,
  RING_BUFFER,
  SHARED_CORE_SPIN_NANOSECONDS,
  SPIN_BETWEEN_HOSTS_NANOSECONDS,
  SPIN_NANOSECONDS,
} from './host-constants.ts';
import { withPredictions } from './host-prediction.ts';
import { hostTuning, hostTuningBetween } from './host-tuning.ts';

/** Default number of channels: the traffic of two ranks fills one; NCCL_MIN_NCHANNELS asks for more. */
const CHANNELS = 1;

export function decideOnHosts(shape: PlannedShape, corrections: Corrections): Decisions {
  const { input, channelSet, preferences } = shape;
  const channels = channelsOf(shape);
  const ranks = input.peers.length;
  const situation = input.hosts.length === 1 ? null : situationOnHosts(shape, corrections);
  const rows =
    situation === null
      ? withPredictions(hostTuning({ ranks, channels }, preferences), {
          ranks,
          ranksPerCore: ranksPerCore(input, false),
        })
      : hostTuningBetween(situation, channels, preferences);
  return {
    device: 'host',
    channels: channelSet.channels(channels),
    transports: { sameHost: 'shm', otherHost: 'socket' },
    ringBuffer: RING_BUFFER,
    pairBuffer: pairBufferOf(ranks),
    gpuBuffers: null,
    tuning: rows,
    copyChannels: 1,
    spinNanoseconds: spinNanosecondsOf(input),
    ...(situation === null ? {} : { situation }),
  };
}

/** Of several hosts, each NIC needs a channel to carry its part of the load. */
function channelsOf({ preferences, network }: PlannedShape): number {
  return Math.min(Math.max(CHANNELS, network?.rails ?? 0, preferences.channels.min), preferences.channels.max);
}

/** What the model is asked about. */
export function situationOnHosts(shape: PlannedShape, corrections: Corrections): Situation {
  const { input, channelSet, network } = shape;
  const channels = channelsOf(shape);
  const load = ranksPerCore(input, network?.isOneMachine === true);
  const terms = { network, corrections, channels, pairChannels: 1, load } as const;
  return withTerms(decisionSituation(channelSet, input, channels), 'host', terms);
}

function spinNanosecondsOf(input: PlanInput): number {
  const load = ranksPerCore(input, false);
  if (load > 1) return Math.round(SHARED_CORE_SPIN_NANOSECONDS / load);
  return input.hosts.length > 1 ? SPIN_BETWEEN_HOSTS_NANOSECONDS : SPIN_NANOSECONDS;
}

/** Of the host that has most; `isOneMachine`: all hosts have the same cores. */
function ranksPerCore({ hosts, peers }: PlanInput, isOneMachine: boolean): number {
  if (isOneMachine) return peers.length / Math.max(...hosts.map(({ cores }) => cores));
  const ranksOf = new Uint32Array(hosts.length);
  for (const { host } of peers) ranksOf[host] = (ranksOf[host] ?? 0) + 1;
  return hosts.reduce((max, { cores }, host) => Math.max(max, (ranksOf[host] ?? 0) / cores), 0);
}
