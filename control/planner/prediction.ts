/**
 * How long a form takes, by a simple model: what it hands over one after the other, and the bytes that the busiest rank sends. It comes
 * within a factor of two of docs/performance.md's tables, and says nothing of ways that nobody has measured: between hosts, and between GPUs
 * that do not reach each other.
 */
import type { CollectiveName, Form, ProtocolName, TuningRow } from '../plan/types.ts';
import { channelsOfMessage, isInPairs } from './cuda.ts';
import type { Decisions } from './plan.ts';

/** Microseconds of the first hand-over and of each further one, and what a rank sends on all channels of the plan, in bytes per microsecond. */
interface Speed {
  readonly first: number;
  readonly further: number;
  readonly bytes: number;
}

const SPEEDS: Readonly<Record<'memory' | 'gpus', Readonly<Record<ProtocolName, Speed>>>> = {
  /** Two ranks on two cores, operations queued together. */
  memory: {
    ll: { first: 0.45, further: 0.3, bytes: 5000 },
    ll128: { first: 0.45, further: 0.3, bytes: 5000 },
    simple: { first: 0.5, further: 0.4, bytes: 13_000 },
  },
  /** Two H200 with 18 NVLinks each, operations of a graph. */
  gpus: {
    ll: { first: 3.6, further: 1.5, bytes: 100_000 },
    ll128: { first: 5.5, further: 3, bytes: 230_000 },
    simple: { first: 12, further: 10, bytes: 330_000 },
  },
};

const MEBIBYTE = 2 ** 20;

export interface Ranks {
  readonly ranks: number;
  readonly hosts: number;
  /** On the host that has most; below one counts as one. */
  readonly ranksPerCore: number;
}

/** The same decisions, each form with its time. */
export function withPredictions(decisions: Decisions, among: Ranks): Decisions {
  const { device, transports, channels } = decisions;
  const isMeasured = among.hosts === 1 && (device === 'host' || transports.sameHost === 'p2p');
  if (!isMeasured) return decisions;
  const speeds = SPEEDS[device === 'host' ? 'memory' : 'gpus'];
  const load = device === 'host' ? Math.max(1, among.ranksPerCore) : 1;
  const predicted = ({ collective, upToBytes, forms }: TuningRow): TuningRow => ({
    collective,
    upToBytes,
    forms: forms.map((form): Form => {
      const { first, further, bytes } = speeds[form.protocol];
      const most =
        device === 'cuda' && isInPairs(collective, form, among.ranks)
          ? channelsOfMessage(collective, among.ranks, channels.length)
          : channels.length;
      const share = Math.min(1, form.channels / most);
      const sent = sentBytes(collective, form, among.ranks) * MEBIBYTE;
      return {
        ...form,
        predictedMicroseconds: rounded(load * (first + further * (handOvers(collective, form, among.ranks) - 1))),
        predictedMicrosecondsPerMebibyte: rounded((load * sent) / (bytes * share)),
      };
    }),
  });
  return { ...decisions, tuning: decisions.tuning.map(predicted) };
}

/** Such that a plan's binary form has the same number: not 0, which would say nothing. */
function rounded(microseconds: number): number {
  return Math.max(1, Math.round(microseconds * 64)) / 64;
}

/** How often data are handed over before the last rank has its result. */
function handOvers(collective: CollectiveName, { algorithm }: Form, ranks: number): number {
  const both = collective === 'allReduce' || collective === 'barrier' ? 2 : 1;
  if (algorithm === 'directTwoShot') return 2;
  if (algorithm === 'tree') return Math.max(1, both * Math.ceil(Math.log2(ranks)));
  if (algorithm === 'ring') return Math.max(1, both * (ranks - 1));
  return 1;
}

/** What the busiest rank sends, by the size of its larger buffer. */
function sentBytes(collective: CollectiveName, { algorithm }: Form, ranks: number): number {
  const others = (ranks - 1) / ranks;
  if (ranks === 1) return 1; // a copy
  switch (collective) {
    case 'allReduce':
      if (algorithm === 'directOneShot') return ranks - 1;
      return algorithm === 'tree' ? 2 : 2 * others;
    case 'broadcast':
    case 'reduce':
      if (algorithm === 'directOneShot') return ranks - 1;
      return algorithm === 'tree' ? 2 : 1;
    case 'sendRecv':
      return 1;
    default:
      return others;
  }
}
