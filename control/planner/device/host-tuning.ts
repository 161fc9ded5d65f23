/** From collective and size to the variants that serve it, on the host device. */
import { COLLECTIVES } from '../../plan/layout.ts';
import { hasRails } from '../../plan/possible.ts';
import type { CollnetName } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName, TuningRow, Variant } from '../../plan/types.ts';
import {
  CHUNK_BYTES,
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
import { DIRECT_MAX_RANKS_ON_HOSTS as DIRECT_MAX_RANKS } from '../tuning/between-costs.ts';
import { predictBetween } from '../tuning/between.ts';
import { choicesFor, timeOf } from '../tuning/choices.ts';
import type { Situation } from '../tuning/situation.ts';
import { stepsOf } from './gpu-tuning.ts';
import { rounded } from './host-prediction.ts';
import { collnetFormFor, preferredVariant } from './preferred.ts';

/** Up to so many bytes (null: all larger ones) this algorithm under this protocol. */
interface Choice extends AlgorithmAndProtocol {
  readonly upToBytes: number | null;
}

/** Protocols of the host device, the one for all sizes first. */
export const PROTOCOLS_ON_HOSTS: readonly ProtocolName[] = ['simple', 'll'];

interface Extent {
  readonly ranks: number;
  /** Of the plan. */
  readonly channels: number;
}

const inPairs: readonly CollectiveName[] = ['allToAll', 'gather', 'scatter'];

/** Inside a host. */
export function hostTuning({ ranks, channels }: Extent, preferences: Preferences = NO_PREFERENCES): TuningRow[] {
  const choices: readonly (readonly [CollectiveName, readonly Choice[]])[] = [
    ['allReduce', allReduce(ranks)],
    ['allGather', amongAll(ranks)],
    ['reduceScatter', amongAll(ranks)],
    ['broadcast', withRoot(ranks)],
    ['reduce', withRoot(ranks)],
    ...inPairs.map((collective) => [collective, [simple(null, 'directOneShot')]] as const),
  ];
  const rows = choices.flatMap(([collective, best]) => {
    const quick = withLowLatency(best, lowLatencyBytes(collective, ranks));
    return preferred(collective, quick, false, preferences).map(rowOf(collective, channels));
  });
  const barrier: Choice = { ...simple(null, 'directOneShot'), protocol: 'll' };
  return [
    ...rows,
    rowOf('sendRecv', 1)(simple(null, 'directOneShot')),
    ...preferred('barrier', [barrier], false, preferences).map(rowOf('barrier', 1)),
  ];
}

/** Between hosts: of each size the variant that the model predicts to be fastest. */
export function hostTuningBetween(situation: Situation, channels: number, preferences: Preferences): TuningRow[] {
  const rails = hasRails('host', situation);
  return COLLECTIVES.flatMap((collective) => {
    const steps = stepsOf(collective, choicesFor(collective, situation), preferences, situation);
    const fastest = steps.map(({ upToBytes, algorithm }) => simple(upToBytes, algorithm));
    const best = collective === 'sendRecv' ? fastest : preferred(collective, fastest, rails, preferences);
    const count = collective === 'sendRecv' || collective === 'barrier' ? 1 : channels;
    const form = collective === 'allReduce' ? collnetFormFor(situation, preferences) : null;
    return best
      .map(rowOf(collective, count))
      .map((row) => (form === null ? row : { ...row, variants: [byNetwork(form), ...row.variants] }))
      .map((row, index, rows) => withTimes(row, rows[index - 1]?.upToBytes ?? 0, situation));
  });
}

/** Where the network reduces the call's type and operator. */
function byNetwork(algorithm: CollnetName): Variant {
  return { ...variantOnHost({ algorithm, protocol: 'simple' }, 1), requires: ['networkReduction'] };
}

/** Beyond it a row's line goes on. */
const LARGEST = 2 ** 36;
const MEBIBYTE = 2 ** 20;

/** The row, which serves more bytes than `begin`, with what the model predicts: a line between its ends. A barrier is an operation of no bytes. */
function withTimes(row: TuningRow, begin: number, situation: Situation): TuningRow {
  const { between } = situation;
  const timed = (variant: Variant): Variant => {
    const asked = row.collective === 'barrier' ? 'allReduce' : row.collective;
    const prediction = between === undefined ? null : predictBetween(asked, variant.algorithm, situation, between);
    if (prediction === null) return variant;
    const end = row.upToBytes ?? LARGEST;
    const [first, last] = [timeOf({ prediction }, begin), timeOf({ prediction }, end)];
    const perByte = row.collective === 'barrier' ? 0 : (last - first) / (end - begin);
    return {
      ...variant,
      predictedMicroseconds: rounded(first - perByte * begin),
      predictedMicrosecondsPerMebibyte: perByte === 0 ? 0 : rounded(perByte * MEBIBYTE),
    };
  };
  return { ...row, variants: row.variants.map(timed) };
}

function simple(upToBytes: number | null, algorithm: AlgorithmName): Choice {
  return { upToBytes, algorithm, protocol: 'simple' };
}

function allReduce(ranks: number): Choice[] {
  if (ranks > DIRECT_MAX_RANKS) return [simple(TREE_BYTES, 'tree'), simple(null, 'ring')];
  const oneShotBytes = Math.floor(ONE_SHOT_BYTES_TIMES_RANKS / ranks);
  return [simple(oneShotBytes, 'directOneShot'), simple(null, 'directTwoShot')];
}

/** All-gather and reduce-scatter: a ring where not every pair should have a connection. */
function amongAll(ranks: number): Choice[] {
  return [simple(null, ranks > DIRECT_MAX_RANKS ? 'ring' : 'directOneShot')];
}

/** Broadcast and reduce: the root itself serves a few ranks or bytes, a tree more, a ring much. */
function withRoot(ranks: number): Choice[] {
  if (ranks <= 2) return [simple(null, 'directOneShot')];
  if (ranks <= STAR_MAX_RANKS) return [simple(STAR_OF_FEW_BYTES, 'directOneShot'), simple(null, 'ring')];
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
