/** From collective and size to the variants that serve it, on the host device. */
import { hasRails } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName, TuningRow, Variant } from '../../plan/types.ts';
import {
  CHUNK_BYTES,
  DIRECT_BETWEEN_HOSTS_BYTES,
  DIRECT_MAX_LONE_RANKS,
  DIRECT_MAX_RANKS,
  HOST_THREADS,
  LOW_LATENCY_BYTES,
  ONE_SHOT_BYTES_TIMES_RANKS,
  STAR_BYTES,
  STAR_MAX_RANKS,
  STAR_OF_FEW_BYTES,
  TREE_BYTES,
} from './host-constants.ts';
import { isPreferred, NO_PREFERENCES } from '../input/preferences.ts';
import type { AlgorithmAndProtocol, Preferences } from '../input/preferences.ts';
import { preferredVariant } from './preferred.ts';

/** Up to so many bytes (null: all larger ones) this algorithm under this protocol. */
interface Choice extends AlgorithmAndProtocol {
  readonly upToBytes: number | null;
}

/** Protocols of the host device, the one for all sizes first. */
export const PROTOCOLS_ON_HOSTS: readonly ProtocolName[] = ['simple', 'll'];

interface Extent {
  readonly ranks: number;
  readonly hosts: number;
  /** 0: hosts have unlike numbers of them. */
  readonly ranksOfEachHost: number;
  /** Of the plan. */
  readonly channels: number;
}

const inPairs: readonly CollectiveName[] = ['allToAll', 'gather', 'scatter'];

export function hostTuning(extent: Extent, preferences: Preferences = NO_PREFERENCES): TuningRow[] {
  const { ranks, hosts, channels } = extent;
  const rails = hasRails('host', extent);
  const choices: readonly (readonly [CollectiveName, readonly Choice[]])[] = [
    ['allReduce', allReduce(ranks, hosts, rails)],
    ['allGather', amongAll(ranks, hosts, rails)],
    ['reduceScatter', amongAll(ranks, hosts, rails)],
    ['broadcast', withRoot(ranks, hosts)],
    ['reduce', withRoot(ranks, hosts)],
    ...inPairs.map((collective) => [collective, [simple(null, 'directOneShot')]] as const),
  ];
  const rows = choices.flatMap(([collective, best]) => {
    const quick = hosts === 1 ? withLowLatency(best, lowLatencyBytes(collective, ranks)) : best;
    return preferred(collective, quick, rails, preferences).map(rowOf(collective, channels));
  });
  const barrier: Choice = { ...simple(null, 'directOneShot'), protocol: hosts === 1 ? 'll' : 'simple' };
  return [
    ...rows,
    rowOf('sendRecv', 1)(simple(null, 'directOneShot')),
    ...preferred('barrier', [barrier], rails, preferences).map(rowOf('barrier', 1)),
  ];
}

function simple(upToBytes: number | null, algorithm: AlgorithmName): Choice {
  return { upToBytes, algorithm, protocol: 'simple' };
}

function allReduce(ranks: number, hosts: number, rails: boolean): Choice[] {
  if (ranks > DIRECT_MAX_RANKS) return [simple(TREE_BYTES, 'tree'), simple(null, 'ring')];
  if (hosts === 1) {
    const oneShotBytes = Math.floor(ONE_SHOT_BYTES_TIMES_RANKS / ranks);
    return [simple(oneShotBytes, 'directOneShot'), simple(null, 'directTwoShot')];
  }
  // Two ranks exchange all they have in one step, and no algorithm sends fewer bytes.
  if (ranks === 2) return [simple(null, 'directOneShot')];
  if (ranks === hosts && ranks <= DIRECT_MAX_LONE_RANKS) {
    return [simple(DIRECT_BETWEEN_HOSTS_BYTES, 'directOneShot'), simple(null, 'directTwoShot')];
  }
  const direct = simple(DIRECT_BETWEEN_HOSTS_BYTES, 'directOneShot');
  // Rails carry as many bytes between two hosts as a tree, on all ranks' connections, and less than a ring.
  if (rails) return [direct, simple(null, 'rail')];
  // Between two hosts a tree carries the data once in each direction, a ring nearly twice.
  if (hosts === 2) return [direct, simple(null, 'tree')];
  return [direct, simple(TREE_BYTES, 'tree'), simple(null, 'ring')];
}

/** All-gather and reduce-scatter: a ring where not every pair should have a connection. */
function amongAll(ranks: number, hosts: number, rails: boolean): Choice[] {
  if (ranks > DIRECT_MAX_RANKS) return [simple(null, 'ring')];
  if (hosts === 1) return [simple(null, 'directOneShot')];
  return [simple(DIRECT_BETWEEN_HOSTS_BYTES, 'directOneShot'), simple(null, rails ? 'rail' : 'ring')];
}

/** Broadcast and reduce: the root itself serves a few ranks or bytes, a tree more, a ring much. */
function withRoot(ranks: number, hosts: number): Choice[] {
  if (ranks <= 2 && hosts === 1) return [simple(null, 'directOneShot')];
  if (ranks <= STAR_MAX_RANKS && hosts === 1) return [simple(STAR_OF_FEW_BYTES, 'directOneShot'), simple(null, 'ring')];
  const larger = [simple(TREE_BYTES, 'tree'), simple(null, 'ring')];
  return ranks > DIRECT_MAX_RANKS ? larger : [simple(STAR_BYTES, 'directOneShot'), ...larger];
}

/** LOW_LATENCY_BYTES as the size that a row is chosen by: of the larger of a rank's two buffers. */
function lowLatencyBytes(collective: CollectiveName, ranks: number): number {
  const wholeAtEveryRank = collective === 'allReduce' || collective === 'broadcast' || collective === 'reduce';
  return LOW_LATENCY_BYTES * (wholeAtEveryRank ? 1 : ranks);
}

/** The same, small sizes under protocol LL. */
function withLowLatency(best: readonly Choice[], bytes: number): Choice[] {
  const first = best.findIndex(({ upToBytes }) => upToBytes === null || upToBytes > bytes);
  const small = best.slice(0, first + 1).map((choice): Choice => ({ ...choice, protocol: 'll' }));
  const last = small.pop();
  return [...small, ...(last === undefined ? [] : [{ ...last, upToBytes: bytes }]), ...best.slice(first)];
}

function preferred(
  collective: CollectiveName,
  best: readonly Choice[],
  rails: boolean,
  preferences: Preferences,
): readonly Choice[] {
  if (best.every((choice) => isPreferred(collective, choice, preferences))) return best;
  const possible = { protocols: PROTOCOLS_ON_HOSTS, rails };
  const chosen = best.map(
    (choice): Choice => ({ ...choice, ...preferredVariant(collective, choice, possible, preferences) }),
  );
  return chosen.filter(({ algorithm, protocol }, index) => {
    const next = chosen[index + 1];
    return next?.algorithm !== algorithm || next.protocol !== protocol;
  });
}

/** Only rings differ from channel to channel. */
function rowOf(collective: CollectiveName, channels: number): (choice: Choice) => TuningRow {
  return (choice) => ({
    collective,
    upToBytes: choice.upToBytes,
    variants: [variantOnHost(choice, choice.algorithm === 'ring' ? channels : 1)],
  });
}

export function variantOnHost({ algorithm, protocol }: AlgorithmAndProtocol, channels: number): Variant {
  return {
    algorithm,
    protocol,
    channels,
    chunkBytes: CHUNK_BYTES,
    threads: HOST_THREADS,
    requires: [],
    asMessages: false,
    predictedMicroseconds: 0,
    predictedMicrosecondsPerMebibyte: 0,
  };
}
