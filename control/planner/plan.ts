/** The planner: from who takes part and where to a CommPlan. Deterministic, and a pure function but for its memory of shapes. */
import type { CommPlan } from '../plan/types.ts';
import { checkDevices } from './check.ts';
import {
  PAIR_BUFFER,
  RING_BUFFER,
  SPIN_BETWEEN_HOSTS_NANOSECONDS,
  SPIN_IN_TURNS_NANOSECONDS,
  SPIN_NANOSECONDS,
} from './constants.ts';
import { decideOnGpus } from './cuda.ts';
import type { PlanInput } from './input.ts';
import { withPredictions } from './prediction.ts';
import { NO_PREFERENCES } from './preferences.ts';
import type { Preferences } from './preferences.ts';
import { ringByHost } from './ring.ts';
import { hostTuning } from './tuning.ts';

/** What a plan decides; it depends on the shape alone, so equal shapes are decided once. */
export type Decisions = Pick<
  CommPlan,
  'device' | 'channels' | 'transports' | 'ringBuffer' | 'pairBuffer' | 'tuning' | 'spinNanoseconds'
>;

/** Throws UnplannableError when the ranks' devices contradict each other. */
export function planCommunicator(input: PlanInput): CommPlan {
  checkDevices(input);
  return bindPlan(input, decide(input));
}

/** Decisions made for a shape (or read from a file), with the ranks and hosts that are really there. */
export function bindPlan(input: PlanInput, decisions: Decisions): CommPlan {
  const { device, channels, transports, ringBuffer, pairBuffer, tuning, spinNanoseconds } = decisions;
  return {
    formatVersion: 1,
    device,
    peers: input.peers.map(({ host, listenPort }) => ({ host, listenPort })),
    hosts: input.hosts.map(({ name, address }) => ({ name, address })),
    channels,
    transports,
    ringBuffer,
    pairBuffer,
    tuning,
    spinNanoseconds,
    token: input.token,
  };
}

export function decide(input: PlanInput, preferences: Preferences = NO_PREFERENCES): Decisions {
  const among = { ranks: input.peers.length, hosts: input.hosts.length, ranksPerCore: ranksPerCore(input) };
  return withPredictions(decideForms(input, preferences), among);
}

function decideForms(input: PlanInput, preferences: Preferences): Decisions {
  if (input.peers[0]?.device === 'cuda') return decideOnGpus(input, preferences);
  return {
    device: 'host',
    channels: [{ ring: ringByHost(input.peers) }],
    transports: { sameHost: 'shm', otherHost: 'socket' },
    ringBuffer: RING_BUFFER,
    pairBuffer: PAIR_BUFFER,
    tuning: hostTuning(input.peers.length, input.hosts.length, preferences),
    spinNanoseconds: spinNanosecondsOf(input),
  };
}

function spinNanosecondsOf(input: PlanInput): number {
  const load = ranksPerCore(input);
  if (load > 1) return Math.round(SPIN_IN_TURNS_NANOSECONDS / load);
  return input.hosts.length > 1 ? SPIN_BETWEEN_HOSTS_NANOSECONDS : SPIN_NANOSECONDS;
}

/** Of the host that has most. */
function ranksPerCore(input: PlanInput): number {
  const ranksOf = new Uint32Array(input.hosts.length);
  for (const { host } of input.peers) ranksOf[host] = (ranksOf[host] ?? 0) + 1;
  return input.hosts.reduce((most, { cores }, host) => Math.max(most, (ranksOf[host] ?? 0) / cores), 0);
}
