/** From collective and size to the forms that serve it, on the host device. */
import type { AlgorithmName, CollectiveName, Form, TuningRow } from '../plan/types.ts';
import {
  CHUNK_BYTES,
  DIRECT_BETWEEN_HOSTS_BYTES,
  DIRECT_MAX_RANKS,
  HOST_THREADS,
  ONE_SHOT_BYTES_TIMES_RANKS,
  STAR_BYTES,
  STAR_MAX_RANKS,
  TREE_BYTES,
  TREE_MIN_HOSTS,
} from './constants.ts';
import { isPreferred, NO_PREFERENCES } from './preferences.ts';
import type { Preferences } from './preferences.ts';

/** Up to so many bytes (null: all larger ones) this algorithm. */
type Choice = readonly [upToBytes: number | null, algorithm: AlgorithmName];

const inPairs: readonly CollectiveName[] = ['allToAll', 'gather', 'scatter', 'sendRecv', 'barrier'];

/** What the host device has, beside what the sizes make best: the first that the user prefers serves all sizes. */
const possible: Readonly<Partial<Record<CollectiveName, readonly AlgorithmName[]>>> = {
  allReduce: ['ring', 'tree', 'directTwoShot', 'directOneShot'],
  allGather: ['ring', 'directOneShot'],
  reduceScatter: ['ring', 'directOneShot'],
  broadcast: ['ring', 'tree', 'directOneShot'],
  reduce: ['ring', 'tree', 'directOneShot'],
};

export function hostTuning(ranks: number, hosts: number, preferences: Preferences = NO_PREFERENCES): TuningRow[] {
  const choices: readonly (readonly [CollectiveName, readonly Choice[]])[] = [
    ['allReduce', allReduce(ranks, hosts)],
    ['allGather', amongAll(ranks, hosts)],
    ['reduceScatter', amongAll(ranks, hosts)],
    ['broadcast', withRoot(ranks, hosts)],
    ['reduce', withRoot(ranks, hosts)],
    ...inPairs.map((collective) => [collective, [[null, 'directOneShot']]] as const),
  ];
  return choices.flatMap(([collective, best]) => preferred(collective, best, preferences).map(rowOf(collective)));
}

function allReduce(ranks: number, hosts: number): Choice[] {
  if (ranks > DIRECT_MAX_RANKS)
    return [
      [TREE_BYTES, 'tree'],
      [null, 'ring'],
    ];
  if (hosts === 1) {
    return [
      [Math.floor(ONE_SHOT_BYTES_TIMES_RANKS / ranks), 'directOneShot'],
      [null, 'directTwoShot'],
    ];
  }
  const last: Choice[] = [
    [DIRECT_BETWEEN_HOSTS_BYTES, 'directOneShot'],
    [null, 'ring'],
  ];
  return hosts < TREE_MIN_HOSTS ? last : last.toSpliced(1, 0, [TREE_BYTES, 'tree']);
}

/** All-gather and reduce-scatter: a ring where not every pair should have a connection. */
function amongAll(ranks: number, hosts: number): Choice[] {
  if (ranks > DIRECT_MAX_RANKS) return [[null, 'ring']];
  return hosts === 1
    ? [[null, 'directOneShot']]
    : [
        [DIRECT_BETWEEN_HOSTS_BYTES, 'directOneShot'],
        [null, 'ring'],
      ];
}

/** Broadcast and reduce: the root itself serves a few ranks or bytes, a tree more, a ring much. */
function withRoot(ranks: number, hosts: number): Choice[] {
  if (ranks <= STAR_MAX_RANKS && hosts === 1) return [[null, 'directOneShot']];
  const larger: Choice[] = [
    [TREE_BYTES, 'tree'],
    [null, 'ring'],
  ];
  return ranks > DIRECT_MAX_RANKS ? larger : [[STAR_BYTES, 'directOneShot'], ...larger];
}

function preferred(collective: CollectiveName, best: readonly Choice[], preferences: Preferences): readonly Choice[] {
  const allowed = (algorithm: AlgorithmName): boolean => isPreferred(form(algorithm), preferences);
  if (best.every(([, algorithm]) => allowed(algorithm))) return best;
  const other = possible[collective]?.find(allowed);
  // Where nothing is left that the user prefers, the wish is about other collectives.
  if (other === undefined) return best;
  const kept = best.map(([upToBytes, algorithm]): Choice => [upToBytes, allowed(algorithm) ? algorithm : other]);
  return kept.filter(([, algorithm], place) => kept[place + 1]?.[1] !== algorithm);
}

function rowOf(collective: CollectiveName): (choice: Choice) => TuningRow {
  return ([upToBytes, algorithm]) => ({ collective, upToBytes, forms: [form(algorithm)] });
}

function form(algorithm: AlgorithmName): Form {
  return {
    algorithm,
    protocol: 'simple',
    channels: 1,
    chunkBytes: CHUNK_BYTES,
    threads: HOST_THREADS,
    requires: [],
    predictedMicroseconds: 0,
  };
}
