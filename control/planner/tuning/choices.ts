/** Chooses, for each size, the algorithm and protocol that the model predicts to be fastest. */
import {
  ALGORITHMS_OF,
  areMessagesBetweenGpuHosts,
  collnetForms,
  hasRails,
  isCollnet,
  isVariantBetweenGpuHosts,
  isVariantOf,
} from '../../plan/possible.ts';
import type { CollnetName } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, DeviceName, ProtocolName } from '../../plan/types.ts';
import { NO_REDUCTION } from '../input/network-reduction.ts';
import type { NetworkReduction } from '../input/network-reduction.ts';
import { DIRECT_MAX_RANKS_ON_HOSTS } from './between-costs.ts';
import { COPY_TOLERANCE_FROM_BYTES, COPY_TOLERANCE, PULL_TOLERANCE } from './constants.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences } from '../input/preferences.ts';
import { predictInside } from './inside.ts';
import { predictBetween } from './between.ts';
import type { Prediction, Situation } from './situation.ts';

export interface Choice {
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
  readonly prediction: Prediction;
}

const PROTOCOLS: readonly ProtocolName[] = ['ll', 'll128', 'simple'];
const INTRA_HOST_ALGORITHMS: readonly AlgorithmName[] = [
  'directOneShot',
  'directTwoShot',
  'ring',
  'tree',
  'copyEngine',
];
const BETWEEN_HOSTS: readonly AlgorithmName[] = ['ring', 'tree', 'directOneShot', 'directTwoShot', 'rail'];

/** All choices with their predictions. Between hosts there are none of LL128, and none for barriers, which are reductions. */
export function choicesFor(collective: CollectiveName, situation: Situation): Choice[] {
  return situation.hosts === 1 ? choicesInside(collective, situation) : choicesBetween(collective, situation);
}

function choicesInside(collective: CollectiveName, situation: Situation): Choice[] {
  return PROTOCOLS.flatMap((protocol) =>
    INTRA_HOST_ALGORITHMS.flatMap((algorithm) => {
      const prediction = predictInside(collective, algorithm, protocol, situation);
      return prediction === null ? [] : [{ algorithm, protocol, prediction }];
    }),
  );
}

function choicesBetween(collective: CollectiveName, situation: Situation): Choice[] {
  const { between } = situation;
  if (between === undefined) return [];
  const algorithms: readonly AlgorithmName[] = isMessage(collective)
    ? ['directOneShot']
    : algorithmsBetween(collective, between.device, situation, between.reduction);
  return algorithms.flatMap((algorithm) => {
    const simple = predictBetween(collective, algorithm, situation, between);
    const choices: Choice[] = simple === null ? [] : [{ algorithm, protocol: 'simple', prediction: simple }];
    const { llCosts } = between;
    const ll =
      llCosts === null || isCollnet(algorithm)
        ? null
        : predictBetween(collective, algorithm, situation, { ...between, costs: llCosts });
    return ll === null ? choices : [...choices, { algorithm, protocol: 'll', prediction: ll }];
  });
}

type Extent = Pick<Situation, 'ranks' | 'hosts' | 'ranksOfEachHost'>;

/** Messages have no alternative. */
function isMessage(collective: CollectiveName): boolean {
  return collective === 'sendRecv' || areMessagesBetweenGpuHosts(collective);
}

/** Algorithms that a plan may choose from. */
export function algorithmsBetween(
  collective: CollectiveName,
  device: DeviceName,
  extent: Extent,
  reduction: NetworkReduction = NO_REDUCTION,
): AlgorithmName[] {
  if (isMessage(collective) || collective === 'barrier' || collective === 'sendRecv') return [];
  const byRanks = BETWEEN_HOSTS.filter((algorithm) => isPossibleBetween(collective, algorithm, device, extent));
  return reduction.by === 'none' ? byRanks : [...byRanks, ...reducedBetween(collective, device, extent)];
}

/** The forms in which a network that reduces can carry the collective out. */
export function reducedBetween(collective: CollectiveName, device: DeviceName, extent: Extent): CollnetName[] {
  const rest = { protocol: 'simple', requires: ['networkReduction'] } as const;
  return collnetForms(extent).filter((algorithm) => isVariantOf(device, collective, { algorithm, ...rest }));
}

function isPossibleBetween(
  collective: Exclude<CollectiveName, 'sendRecv'>,
  algorithm: AlgorithmName,
  device: DeviceName,
  situation: Extent,
): boolean {
  if (algorithm === 'rail' && !hasRails(device, situation)) return false;
  const { ranks } = situation;
  const variant = { algorithm, protocol: 'simple', requires: [], asMessages: false, channels: 1 } as const;
  if (device === 'cuda') return isVariantBetweenGpuHosts(collective, variant, { ranks, pairChannels: 1 });
  const isDirect = algorithm === 'directOneShot' || algorithm === 'directTwoShot';
  return ALGORITHMS_OF[collective].includes(algorithm) && (!isDirect || ranks <= DIRECT_MAX_RANKS_ON_HOSTS);
}

/** Collectives that the engine runs as messages, which have few channels with large slots. */
const AS_MESSAGES: readonly CollectiveName[] = ['allGather', 'allToAll', 'sendRecv'];

/** True if the choice uses protocol Simple between pairs on all channels, whose slots are small (device/gpu-buffers.ts); rings have large slots. */
function hasSmallSlots(collective: CollectiveName, { algorithm, protocol }: Choice): boolean {
  if (protocol !== 'simple' || algorithm === 'ring' || algorithm === 'copyEngine') return false;
  return algorithm !== 'directOneShot' || !AS_MESSAGES.includes(collective);
}

/**
 * The choices that the user allows (NCCL_ALGO, NCCL_PROTO), or all if they exclude every one; without choices with small slots where a ring of protocol
 * Simple is available, which is faster.
 */
export function preferredChoices(
  collective: CollectiveName,
  choices: readonly Choice[],
  preferences: Preferences,
  { hosts, ranks }: Situation,
): readonly Choice[] {
  const wanted = choices.filter(({ algorithm, protocol }) =>
    isPreferred(collective, { algorithm, protocol }, preferences),
  );
  const all = ofOneForm(wanted.length === 0 ? choices : wanted);
  const hasRing = all.some(({ algorithm, protocol }) => algorithm === 'ring' && protocol === 'simple');
  return hosts === 1 && ranks > 2 && hasRing ? all.filter((choice) => !hasSmallSlots(collective, choice)) : all;
}

/** A communicator's groups are of one form, so all sizes take the better one. */
function ofOneForm(choices: readonly Choice[]): readonly Choice[] {
  const isDirect = choices.some(({ algorithm }) => algorithm === 'collnet');
  return isDirect ? choices.filter(({ algorithm }) => algorithm !== 'collnetChain') : choices;
}

/** Whether ranks take the algorithm only if all of them agree that they can; else they take another one, which needs nothing. */
export function isConditional({ algorithm }: Pick<Choice, 'algorithm'>): boolean {
  return algorithm === 'copyEngine' || isCollnet(algorithm);
}

/** Predicted time in microseconds. */
export function timeOf({ prediction }: Pick<Choice, 'prediction'>, bytes: number): number {
  const { microseconds, bytesPerMicrosecond, fill } = prediction;
  const filled = fill === null ? 0 : fill.microseconds * Math.min(1, bytes / fill.bytes);
  return microseconds + bytes / bytesPerMicrosecond + filled;
}

/** True if algorithm `copyEngine` also runs kernels, which pull the operands: they read them directly from the other ranks' buffers. */
export function isPulled(collective: CollectiveName): boolean {
  return collective === 'allReduce' || collective === 'reduceScatter';
}

/** Factor by which algorithm `copyEngine` may be slower than the fastest and still be chosen. */
function toleranceOf(collective: CollectiveName, bytes: number): number {
  if (bytes < COPY_TOLERANCE_FROM_BYTES) return 1;
  if (isPulled(collective)) return PULL_TOLERANCE;
  return collective === 'gather' || collective === 'scatter' ? 1 : COPY_TOLERANCE;
}

/** The fastest choice, or copy engines that take little longer; null if there are no choices. */
export function bestOf(collective: CollectiveName, choices: readonly Choice[], bytes: number): Choice | null {
  const tolerance = toleranceOf(collective, bytes);
  const cost = (choice: Choice): number => timeOf(choice, bytes) / (choice.algorithm === 'copyEngine' ? tolerance : 1);
  return choices.reduce<Choice | null>(
    (best, choice) => (best === null || cost(choice) < cost(best) ? choice : best),
    null,
  );
}
