/** For each size the variant that is predicted to be fastest. */
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { COPIES_MAY_FROM_BYTES, COPIES_MAY_TAKE, PULLS_MAY_TAKE } from './constants.ts';
import type { NetworkAlgorithm } from './constants.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences } from '../input/preferences.ts';
import { predictInside } from './inside.ts';
import { predictNetwork } from './network.ts';
import type { Prediction, Situation } from './network.ts';

export interface Choice {
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
  readonly prediction: Prediction;
}

const PROTOCOLS: readonly ProtocolName[] = ['ll', 'll128', 'simple'];
const INSIDE: readonly AlgorithmName[] = ['directOneShot', 'directTwoShot', 'ring', 'tree', 'copyEngine'];
const NETWORK: readonly NetworkAlgorithm[] = ['ring', 'tree', 'collnet'];

/** All that there are; inside a host ncclrun's own variants, else rings, trees and CollNet. */
export function choicesFor(collective: CollectiveName, situation: Situation): Choice[] {
  const isInside = situation.hosts === 1 && situation.links > 0;
  return PROTOCOLS.flatMap((protocol) =>
    isInside
      ? INSIDE.map((algorithm) => ({
          algorithm,
          protocol,
          prediction: predictInside(collective, algorithm, protocol, situation),
        }))
      : NETWORK.map((algorithm) => ({
          algorithm,
          protocol,
          prediction: predictNetwork(collective, algorithm, protocol, situation),
        })),
  ).flatMap(({ algorithm, protocol, prediction }) =>
    prediction === null ? [] : [{ algorithm, protocol, prediction }],
  );
}

/** Moves that the engine makes messages of, which have few channels with large slots. */
const IN_MESSAGES: readonly CollectiveName[] = ['allGather', 'allToAll', 'sendRecv'];

/** Uses protocol Simple between pairs on all channels, where its slots are small (device/gpu-buffers.ts); rings have large ones. */
function isCramped(collective: CollectiveName, { algorithm, protocol }: Choice): boolean {
  if (protocol !== 'simple' || algorithm === 'ring' || algorithm === 'copyEngine') return false;
  return algorithm !== 'directOneShot' || !IN_MESSAGES.includes(collective);
}

/** Those that the user wants (NCCL_ALGO, NCCL_PROTO); all, where none of them is left. Without those that rings do better with the engine's buffers. */
export function preferredChoices(
  collective: CollectiveName,
  choices: readonly Choice[],
  preferences: Preferences,
  { hosts, ranks }: Situation,
): readonly Choice[] {
  const wanted = choices.filter(({ algorithm, protocol }) =>
    isPreferred(collective, { algorithm, protocol }, preferences),
  );
  const all = wanted.length === 0 ? choices : wanted;
  const hasRing = all.some(({ algorithm, protocol }) => algorithm === 'ring' && protocol === 'simple');
  return hosts === 1 && ranks > 2 && hasRing ? all.filter((choice) => !isCramped(collective, choice)) : all;
}

/** Microseconds. */
export function timeOf({ prediction }: Choice, bytes: number): number {
  const { microseconds, bytesPerMicrosecond, fill } = prediction;
  const filled = fill === null ? 0 : fill.microseconds * Math.min(1, bytes / fill.bytes);
  return microseconds + bytes / bytesPerMicrosecond + filled;
}

/** Whether its variant `copyEngine` has kernels too, which read what they reduce where it lies. */
export function pulls(collective: CollectiveName): boolean {
  return collective === 'allReduce' || collective === 'reduceScatter';
}

/** How much longer than the fastest its variant `copyEngine` may take. */
function mayTakeOf(collective: CollectiveName, bytes: number): number {
  if (bytes < COPIES_MAY_FROM_BYTES) return 1;
  if (pulls(collective)) return PULLS_MAY_TAKE;
  return collective === 'gather' || collective === 'scatter' ? 1 : COPIES_MAY_TAKE;
}

/** The fastest, or copy engines that take little longer; null where nothing is known. */
export function bestOf(collective: CollectiveName, choices: readonly Choice[], bytes: number): Choice | null {
  const mayTake = mayTakeOf(collective, bytes);
  const cost = (choice: Choice): number => timeOf(choice, bytes) / (choice.algorithm === 'copyEngine' ? mayTake : 1);
  return choices.reduce<Choice | null>(
    (best, choice) => (best === null || cost(choice) < cost(best) ? choice : best),
    null,
  );
}
