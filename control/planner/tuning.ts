/** From collective and size to the forms that serve it, on the host device. */
import type { AlgorithmName, CollectiveName, Form, TuningRow } from '../plan/types.ts';
import {
  CHUNK_BYTES,
  DIRECT_BETWEEN_HOSTS_BYTES,
  DIRECT_MAX_RANKS,
  HOST_THREADS,
  ONE_SHOT_BYTES_TIMES_RANKS,
} from './constants.ts';

const inRing: readonly CollectiveName[] = ['allGather', 'reduceScatter', 'broadcast', 'reduce'];
const inPairs: readonly CollectiveName[] = ['allToAll', 'gather', 'scatter', 'sendRecv', 'barrier'];

export function hostTuning(ranks: number, hosts: number): TuningRow[] {
  return [
    ...allReduce(ranks, hosts),
    ...inRing.map((collective) => openEnded(collective, 'ring')),
    ...inPairs.map((collective) => openEnded(collective, 'directOneShot')),
  ];
}

function allReduce(ranks: number, hosts: number): TuningRow[] {
  const last = openEnded('allReduce', hosts > 1 || ranks > DIRECT_MAX_RANKS ? 'ring' : 'directTwoShot');
  if (ranks > DIRECT_MAX_RANKS) return [last];
  const oneShot = hosts > 1 ? DIRECT_BETWEEN_HOSTS_BYTES : Math.floor(ONE_SHOT_BYTES_TIMES_RANKS / ranks);
  return [{ collective: 'allReduce', upToBytes: oneShot, forms: [form('directOneShot')] }, last];
}

function openEnded(collective: CollectiveName, algorithm: AlgorithmName): TuningRow {
  return { collective, upToBytes: null, forms: [form(algorithm)] };
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
