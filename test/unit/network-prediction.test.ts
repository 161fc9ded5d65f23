/** What the model predicts for rings and trees of several hosts: numbers that change only with the model. */
import { expect, it } from 'vitest';
import type { CollectiveName, ProtocolName } from '../../control/plan/types.ts';
import type { Agreement } from '../../control/planner/cluster/agreement.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { NetworkAlgorithm } from '../../control/planner/tuning/constants.ts';
import { predictNetwork, type Situation } from '../../control/planner/tuning/network.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

const protocols = ['ll', 'll128', 'simple'] as const satisfies readonly ProtocolName[];
const { situation } = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 2 }]);

/** The same channels between so many hosts, as if hosts had NICs of 48 GB/s. */
function between(hosts: number, change: Partial<Situation> = {}): Situation {
  const graph = {
    ...situation.ring,
    channels: 8,
    inside: 40_000,
    between: 48_000,
    typeBetween: situation.ring.typeInside,
  };
  return { ...situation, hosts, ranks: 2 * hosts, ring: graph, tree: graph, ...change };
}

/** Microseconds and GB/s under each protocol. */
function predicted(collective: CollectiveName, how: NetworkAlgorithm, at: Situation): string {
  const texts = protocols.map((protocol) => {
    const found = predictNetwork(collective, how, protocol, at);
    if (found === null) return 'none';
    return `${found.microseconds.toFixed(2)} at ${(found.bytesPerMicrosecond / 1000).toFixed(2)}`;
  });
  return texts.join(', ');
}

/** Another graph for all. */
function graph(at: Situation, change: Partial<Agreement>): Situation {
  return { ...at, ring: { ...at.ring, ...change }, tree: { ...at.tree, ...change } };
}

const alone = { ...between(4), ranks: 4 };
const collnet = { ...between(4), collnet: between(4).ring };

it.each<[string, CollectiveName, NetworkAlgorithm, Situation, string]>([
  ['one host', 'allReduce', 'ring', between(1), '7.80 at 141.00, 17.80 at 293.60, 15.20 at 320.00'],
  ['one host', 'allReduce', 'tree', between(1), '8.00 at 38.74, 16.50 at 114.49, 16.40 at 147.20'],
  ['two hosts', 'allReduce', 'ring', between(2), '16.00 at 26.00, 29.60 at 195.73, 50.00 at 213.33'],
  ['two hosts', 'allReduce', 'tree', between(2), '18.00 at 19.50, 33.50 at 138.00, 44.40 at 147.20'],
  ['three hosts', 'allReduce', 'ring', between(3), '23.40 at 12.24, 41.40 at 176.16, 84.80 at 230.40'],
  ['four hosts', 'allReduce', 'tree', between(4), '28.00 at 10.20, 50.50 at 116.00, 72.40 at 144.00'],
  ['four hosts of one rank', 'allReduce', 'ring', alone, '36.60 at 13.60, 65.00 at 195.73, 92.40 at 256.00'],
  [
    'three hosts with AMD processors',
    'allReduce',
    'ring',
    between(3, { processors: 'amd' }),
    '29.40 at 11.40, 42.00 at 176.16, 100.40 at 230.40',
  ],
  [
    'two hosts with AMD processors',
    'allReduce',
    'tree',
    between(2, { processors: 'amd' }),
    '18.00 at 11.25, 33.50 at 138.00, 44.40 at 147.20',
  ],
  [
    'four hosts with plain trees',
    'allReduce',
    'tree',
    between(4, { hasPlainTree: true }),
    '28.00 at 8.67, 50.50 at 98.60, 72.40 at 122.40',
  ],
  ['four hosts with collnet', 'allReduce', 'collnet', collnet, 'none, none, 35.60 at 160.00'],
  ['four hosts without collnet', 'allReduce', 'collnet', between(4), 'none, none, none'],
  ['one host with collnet', 'allReduce', 'collnet', { ...collnet, hosts: 1 }, 'none, none, none'],
  ['two hosts', 'allGather', 'ring', between(2), '11.30 at 52.00, 21.80 at 391.47, 29.20 at 426.67'],
  ['two hosts', 'allGather', 'tree', between(2), 'none, none, none'],
  ['three hosts', 'reduceScatter', 'ring', between(3), '15.00 at 24.48, 27.70 at 352.32, 46.60 at 460.80'],
  [
    'one host',
    'broadcast',
    'ring',
    graph(between(1), { sameChannels: false }),
    '7.80 at 141.00, 17.80 at 293.60, 16.40 at 320.00',
  ],
  [
    'two hosts',
    'broadcast',
    'ring',
    graph(between(2), { sameChannels: false }),
    '17.40 at 39.00, 30.00 at 293.60, 64.40 at 320.00',
  ],
  [
    'two hosts and equal channels',
    'reduce',
    'ring',
    graph(between(2), { sameChannels: true }),
    '9.30 at 39.00, 18.00 at 293.60, 22.40 at 320.00',
  ],
  ['two hosts', 'sendRecv', 'ring', between(2), 'none, none, none'],
  [
    'two hosts without NVLinks',
    'allReduce',
    'ring',
    graph(between(2), { typeInside: 'PHB' }),
    '16.00 at 26.00, none, 59.20 at 213.33',
  ],
  [
    'two hosts over a distance',
    'allReduce',
    'ring',
    graph(between(2), { typeBetween: 'SYS', latencyBetween: 1.5 }),
    '19.00 at 26.00, none, 56.00 at 213.33',
  ],
  ['one rank', 'allReduce', 'ring', { ...between(1), ranks: 1 }, 'none, none, none'],
])('the model predicts the same times on %s for %s over %s', (_name, collective, how, at, times) => {
  expect(predicted(collective, how, at)).toBe(times);
});
