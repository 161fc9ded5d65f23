/** Chooses variants by collective and size between the GPUs of one host: per size the fastest one in the model. */
import { COLLECTIVES } from '../../plan/layout.ts';
import { canBeMessages, isCollnet } from '../../plan/possible.ts';
import type { CollectiveName, ProtocolName, TuningRow, Variant } from '../../plan/types.ts';
import type { AlgorithmAndProtocol, Preferences } from '../input/preferences.ts';
import { bestOf, choicesFor, isConditional, preferredChoices, isPulled, timeOf } from '../tuning/choices.ts';
import type { Choice } from '../tuning/choices.ts';
import { PULLS } from '../tuning/constants.ts';
import type { Situation } from '../tuning/situation.ts';
import { rounded } from './host-prediction.ts';

/** Two steps, which go round a ring one behind the other; a multiple of the formulas' grain, which is 3840 bytes of 512 threads: no third, short one. */
const CHUNK_BYTES = 136 * 3840;
export const THREADS = 512;
export const MIN_THREADS = 64;
const KiB = 1024;
/** What the threads of a block move at once; with more, another channel takes part. */
const BYTES_PER_CHANNEL: Readonly<Record<ProtocolName, number>> = { ll: 4 * KiB, ll128: 7680, simple: 64 * KiB };
/** Of what copy engines broadcast, a part is sent on while the next one comes. Of two ranks none sends anything on: it is one part, however large. */
const COPIED_PART_BYTES = 32 * 1024 * KiB;
const COPIED_WHOLE_BYTES = 2 ** 40;
/** Each channel has a group of its own, of which a network has few. */
const MAX_COLLNET_CHANNELS = 4;
/** Beyond it no variant becomes the fastest any more. */
const LARGEST = 2 ** 36;

/** Algorithm and protocol up to `upToBytes` (null: all larger sizes). A size is that of the larger of a rank's two buffers. */
interface Step extends AlgorithmAndProtocol {
  readonly upToBytes: number | null;
  /** null: of operations without data. */
  readonly choice: Choice | null;
  /** Copy engines or a network that reduces, if all ranks agree in time; otherwise what is above. null: it is the fastest anyway. */
  readonly conditional: Choice | null;
}

export interface ChannelBudget {
  readonly ranks: number;
  /** Of the plan, and how many of them every operation is to use. */
  readonly channels: number;
  readonly minChannels: number;
  /** Of the plan: not for messages. */
  readonly copyChannels: number;
  /** On which every pair has a connection: between hosts they are made for messages alone. */
  readonly pairChannels: number;
}

/** What decides whether messages take part. */
type MessageBudget = Pick<ChannelBudget, 'ranks' | 'channels' | 'copyChannels'>;

export function tuningOnGpus(situation: Situation, budget: ChannelBudget, preferences: Preferences): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const choices = choicesFor(collective, situation).filter(
      ({ algorithm }) => algorithm !== 'copyEngine' || preferences.gpusReachEachOther,
    );
    const steps = stepsOf(collective, choices, preferences, situation);
    return rowsOfSteps(collective, steps, () => budget);
  });
}

/** Fallback where the model has no prediction: a single rank. */
function anyhow(collective: CollectiveName): Step {
  const protocol = collective === 'barrier' ? 'll' : 'simple';
  return { upToBytes: null, algorithm: 'directOneShot', protocol, choice: null, conditional: null };
}

function unconditional(choices: readonly Choice[]): Choice[] {
  return choices.filter((choice) => !isConditional(choice));
}

/** As the sizes grow, the fastest that every rank has, and a conditional one where that is faster. */
export function stepsOf(
  collective: CollectiveName,
  all: readonly Choice[],
  preferences: Preferences,
  situation: Situation,
): Step[] {
  const choices = preferredChoices(collective, all, preferences, situation);
  const always = unconditional(choices).length === 0 ? unconditional(all) : unconditional(choices);
  const steps: Step[] = [];
  let from = 1;
  for (;;) {
    const best = bestOf(collective, choices, from);
    const kernel = bestOf(collective, always, from);
    if (best === null || kernel === null) return [anyhow(collective)];
    const ends = [lastOf(collective, choices, best, from), lastOf(collective, always, kernel, from)].filter(
      (end) => end !== null,
    );
    const last = ends.length === 0 ? null : Math.min(...ends);
    const conditional = isConditional(best) ? best : null;
    steps.push({
      upToBytes: last,
      algorithm: kernel.algorithm,
      protocol: kernel.protocol,
      choice: kernel,
      conditional,
    });
    if (last === null) return steps;
    from = last + 1;
  }
}

/** The size up to which `best`, which is it at `from`, stays so; null: for ever. Another that is best for less than a sixteenth of a size counts for nothing. */
function lastOf(collective: CollectiveName, choices: readonly Choice[], best: Choice, from: number): number | null {
  let last = from;
  let next = from;
  while (bestOf(collective, choices, next) === best) {
    if (next > LARGEST) return null;
    last = next;
    next = Math.ceil((next * 17) / 16);
  }
  while (next - last > 1) {
    const middle = Math.floor((last + next) / 2);
    if (bestOf(collective, choices, middle) === best) last = middle;
    else next = middle;
  }
  return last;
}

export function rowsOfSteps(
  collective: CollectiveName,
  steps: readonly Step[],
  budgetOf: (step: AlgorithmAndProtocol) => ChannelBudget,
  passesOf: PassesOf = () => 1,
): TuningRow[] {
  return steps.flatMap((step, index) =>
    rowsOf(collective, step, steps[index - 1]?.upToBytes ?? 0, { ...budgetOf(step), passesOf }),
  );
}

/** How often the threads of `channels` blocks move data before more channels take part; 0: there are never so many. */
export type PassesOf = (protocol: ProtocolName, channels: number) => number;

interface RowBudget extends ChannelBudget {
  readonly passesOf: PassesOf;
}

/** A row for each number of channels: as many as the size keeps busy. */
function rowsOf(collective: CollectiveName, step: Step, from: number, budget: RowBudget): TuningRow[] {
  const perPass = bytesPerChannel(collective, step, budget.ranks);
  const bytesOf = (channels: number): number => channels * perPass * budget.passesOf(step.protocol, channels);
  const maxChannels = channelsFor(collective, step, budget);
  const minChannels = Math.min(maxChannels, budget.minChannels);
  const rows: TuningRow[] = [];
  let begin = from;
  const add = (upToBytes: number | null, channels: number, threads: number): void => {
    const effort = { channels: Math.max(channels, minChannels), threads };
    rows.push(row(collective, { ...step, upToBytes, begin }, effort, budget));
    begin = upToBytes ?? begin;
  };
  const isInside = (upToBytes: number): boolean =>
    upToBytes > from && (step.upToBytes === null || upToBytes < step.upToBytes);
  // What one block's threads move at once needs no more of them.
  for (let threads = MIN_THREADS; step.protocol !== 'simple' && threads < THREADS; threads *= 2) {
    const upToBytes = Math.floor((perPass * threads) / THREADS);
    if (isInside(upToBytes)) add(upToBytes, 1, threads);
  }
  for (let channels = 1; channels < maxChannels; channels *= 2) {
    if (bytesOf(channels) > begin && isInside(bytesOf(channels))) add(bytesOf(channels), channels, THREADS);
  }
  let enough = 1;
  while (enough < maxChannels && (step.upToBytes === null || bytesOf(enough) < step.upToBytes)) enough++;
  add(step.upToBytes, enough, collective === 'barrier' ? MIN_THREADS : THREADS);
  return rows;
}

/** Makes variants for the device `cuda`; also the tables of measured times use it. */
export const variantsOnGpus = {
  maxChannels: channelsFor,
  make({ algorithm, protocol }: AlgorithmAndProtocol, { channels, threads }: Effort, ranks: number): Variant {
    const copies = algorithm === 'copyEngine';
    return {
      algorithm,
      protocol,
      channels,
      chunkBytes: copies ? copiedBytes(ranks) : CHUNK_BYTES,
      threads,
      requires: [],
      asMessages: false,
      predictedMicroseconds: 0,
      predictedMicrosecondsPerMebibyte: 0,
    };
  },
} as const;

function copiedBytes(ranks: number): number {
  return ranks === 2 ? COPIED_WHOLE_BYTES : COPIED_PART_BYTES;
}

function channelsFor(
  collective: CollectiveName,
  step: AlgorithmAndProtocol,
  { ranks, channels, copyChannels, pairChannels }: ChannelBudget,
): number {
  if (step.algorithm === 'copyEngine') return isPulled(collective) ? Math.min(channels, PULLS.blocks) : 1;
  if (collective === 'barrier') return 1;
  if (isInPairs(collective, step, { ranks, channels, copyChannels }))
    return channelsOfMessage(collective, ranks, channels - copyChannels);
  const hasAll = step.algorithm === 'ring' || step.algorithm === 'rail';
  return hasAll ? channels : Math.min(channels, pairChannels);
}

/** Whether the engine makes sends and receives of it: not where they would take more channels than there are. */
function isInPairs(collective: CollectiveName, variant: AlgorithmAndProtocol, budget: MessageBudget): boolean {
  if (collective === 'sendRecv') return true;
  return isAsMessages(collective, variant, budget) && (collective !== 'broadcast' || budget.ranks === 2);
}

function isAsMessages(
  collective: CollectiveName,
  variant: AlgorithmAndProtocol,
  { ranks, channels, copyChannels }: MessageBudget,
): boolean {
  // A root's blocks of one launch do better inside a host.
  if (collective === 'gather' || collective === 'scatter') return false;
  return canBeMessages('cuda', collective, variant) && channels - copyChannels >= messagesOf(collective, ranks);
}

/** The rows with `asMessages` of each variant, for a plan of so many channels. */
export function withMessages(rows: readonly TuningRow[], budget: MessageBudget): TuningRow[] {
  return rows.map((row) => ({
    ...row,
    variants: row.variants.map((variant) => ({
      ...variant,
      asMessages: isAsMessages(row.collective, variant, budget),
    })),
  }));
}

/**
 * What a message has of the channels: those of a group share the SMs. Only of a broadcast's message is it known that the ranks have
 * no other.
 */
export function channelsOfMessage(collective: CollectiveName, ranks: number, channels: number): number {
  return Math.max(1, Math.floor(channels / messagesOf(collective, ranks)));
}

function messagesOf(collective: CollectiveName, ranks: number): number {
  return collective === 'broadcast' ? 1 : Math.max(1, 2 * (ranks - 1));
}

function bytesPerChannel(collective: CollectiveName, { algorithm, protocol }: Step, ranks: number): number {
  if (collective === 'barrier') return BYTES_PER_CHANNEL[protocol];
  const wholeAtEveryRank = ['allReduce', 'broadcast', 'reduce', 'sendRecv'].includes(collective);
  const isDivided = algorithm === 'directTwoShot' || algorithm === 'rail';
  return BYTES_PER_CHANNEL[protocol] * (wholeAtEveryRank && !isDivided ? 1 : ranks);
}

interface Effort {
  readonly channels: number;
  readonly threads: number;
}

interface RowStep extends Step {
  /** The row serves more bytes than that. */
  readonly begin: number;
}

function row(collective: CollectiveName, step: RowStep, effort: Effort, budget: ChannelBudget): TuningRow {
  return {
    collective,
    upToBytes: step.upToBytes,
    variants: [...conditionalOf(collective, step, effort, budget), ...kernelsOf(step, effort, budget.ranks)],
  };
}

function conditionalOf(
  collective: CollectiveName,
  { conditional, upToBytes, begin }: RowStep,
  effort: Effort,
  budget: ChannelBudget,
): Variant[] {
  if (conditional === null) return [];
  const { algorithm, protocol } = conditional;
  const step = { upToBytes, begin, algorithm, protocol, choice: conditional, conditional };
  if (isCollnet(algorithm)) {
    const groups = { channels: Math.min(effort.channels, MAX_COLLNET_CHANNELS), threads: THREADS };
    return [{ ...variantOf(step, groups, budget.ranks), requires: ['networkReduction'] }];
  }
  const channels = channelsFor(collective, step, budget);
  const copies = { channels, threads: isPulled(collective) ? THREADS : MIN_THREADS };
  return [{ ...variantOf(step, copies, budget.ranks), requires: ['publishedAddresses'] }];
}

function kernelsOf(step: RowStep, effort: Effort, ranks: number): Variant[] {
  const variant = variantOf(step, effort, ranks);
  if (step.protocol !== 'll128') return [variant];
  return [
    { ...variant, requires: ['wholeLines'] },
    { ...variant, protocol: 'simple' },
  ];
}

const MEBIBYTE = 2 ** 20;

function variantOf({ choice, upToBytes, begin, ...variant }: RowStep, effort: Effort, ranks: number): Variant {
  // The straight line between the ends of the row; of the last one, what it comes to.
  const end = upToBytes ?? LARGEST;
  const [first, last] = choice === null ? [0, 0] : [timeOf(choice, begin), timeOf(choice, end)];
  const perByte = (last - first) / (end - begin);
  return {
    ...variantsOnGpus.make(variant, effort, ranks),
    predictedMicroseconds: choice === null ? 0 : rounded(first - perByte * begin),
    predictedMicrosecondsPerMebibyte: choice === null ? 0 : rounded(perByte * MEBIBYTE),
  };
}
