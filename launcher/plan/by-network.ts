/** All-reduces that the network can reduce (algorithm collnet): of which sizes it does, and why of the others it does not. */
import { isCollnet } from '../../control/plan/possible.ts';
import type { TuningRow, Variant } from '../../control/plan/types.ts';
import type { AggregatorPlace, NetworkReduction } from '../../control/planner/input/network-reduction.ts';
import { isPreferred } from '../../control/planner/input/preferences.ts';
import type { Preferences } from '../../control/planner/input/preferences.ts';
import type { MeasuredVariant } from '../../control/planner/measured/table.ts';
import { fastestAt } from '../../control/planner/measured/times.ts';
import { collnetLimit, hostOf } from '../../control/planner/tuning/collnet-limit.ts';
import { rateToAggregator } from '../../control/planner/tuning/aggregators.ts';
import { bestOf, choicesFor, timeOf } from '../../control/planner/tuning/choices.ts';
import type { Choice } from '../../control/planner/tuning/choices.ts';
import type { BetweenTerms, Situation } from '../../control/planner/tuning/situation.ts';

export interface ByNetworkView {
  readonly by: 'plugin' | 'aggregators';
  readonly aggregators: readonly AggregatorView[];
  readonly ranges: readonly RangeView[];
}

interface AggregatorView {
  readonly host: string;
  /** Of its NIC; null: unknown. */
  readonly speedMbps: number | null;
}

/** Sizes that are treated alike. */
export interface RangeView {
  /** null: all larger ones. */
  readonly upToBytes: number | null;
  readonly isTaken: boolean;
  /** The user's NCCL_ALGO or NCCL_PROTO leaves no choice; else the times decide. */
  readonly isAskedFor: boolean;
  /** The size of the times. */
  readonly bytes: number;
  readonly collnet: TimesView;
  readonly otherAlgorithm: string;
  readonly other: TimesView;
  /** What limits collnet at that size, as a clause. */
  readonly limit: string;
}

export interface TimesView {
  readonly predictedMicroseconds: number;
  /** null: nothing was measured for about so many bytes. */
  readonly measuredMicroseconds: number | null;
}

interface Known {
  /** Of the plan that engines would get. */
  readonly tuning: readonly TuningRow[];
  readonly situation: Situation;
  readonly preferences: Preferences;
  /** All-reduces of a table of measured times. */
  readonly measured: readonly MeasuredVariant[];
  /** Those that the user asks about. */
  readonly sizes: readonly number[];
}

/** null: no network reduces. */
export function byNetworkView({ tuning, situation, preferences, measured, sizes }: Known): ByNetworkView | null {
  const { between } = situation;
  if (between === undefined || between.reduction.by === 'none') return null;
  const { reduction } = between;
  const head = { by: reduction.by, aggregators: aggregatorViews(reduction, between) };
  const choices = choicesFor('allReduce', situation);
  const rows = tuning.filter(({ collective }) => collective === 'allReduce');
  const times = (choice: Choice, bytes: number): TimesView => ({
    predictedMicroseconds: rounded(timeOf(choice, bytes)),
    measuredMicroseconds: roundedOrNull(fastestAt(measured, choice, bytes)),
  });
  const forms = choices.filter(({ algorithm }) => isCollnet(algorithm));
  const ranges = rangesOf(rows, sizes).flatMap(({ otherwise, ...range }): RangeView[] => {
    const { bytes } = range;
    const other = choiceOf(choices, otherwise);
    const collnet = bestOf('allReduce', forms, bytes);
    if (collnet === null || other === undefined) return [];
    return [
      {
        ...range,
        isAskedFor: [collnet, other].some((choice) => !isPreferred('allReduce', choice, preferences)),
        collnet: times(collnet, bytes),
        otherAlgorithm: other.algorithm,
        other: times(other, bytes),
        limit: collnetLimit(collnet, { situation, between }, bytes, nameOf),
      },
    ];
  });
  return { ...head, ranges };
}

/** As engine.ts names them. */
function nameOf(host: number): string {
  return `host${host}`;
}

function aggregatorViews(reduction: NetworkReduction, between: BetweenTerms): AggregatorView[] {
  if (reduction.by !== 'aggregators') return [];
  return reduction.aggregators.map((aggregator) => ({
    host: hostOf(aggregator, nameOf),
    speedMbps: speedOf(aggregator, between),
  }));
}

const BITS = 8;

function speedOf(aggregator: AggregatorPlace, between: BetweenTerms): number | null {
  if (aggregator.place === 'other') return aggregator.speedMbps === 0 ? null : aggregator.speedMbps;
  const rate = rateToAggregator(between);
  return Number.isFinite(rate) ? rate * BITS : null;
}

interface Range extends Pick<RangeView, 'upToBytes' | 'isTaken' | 'bytes'> {
  /** What ranks take for `bytes` where the network does not reduce. */
  readonly otherwise: Variant | undefined;
}

/** Neighbouring rows where the network is alike first, or alike not. */
function rangesOf(rows: readonly TuningRow[], sizes: readonly number[]): Range[] {
  const ranges: Range[] = [];
  let above = 0;
  rows.forEach((row, index) => {
    const { upToBytes } = row;
    const isTaken = isByNetwork(row);
    const next = rows[index + 1];
    if (next !== undefined && isByNetwork(next) === isTaken) return;
    const upTo = upToBytes ?? Infinity;
    const bytes = sizes.findLast((size) => size > above && size <= upTo) ?? upToBytes ?? above + 1;
    const own = rows.find((one) => one.upToBytes === null || bytes <= one.upToBytes) ?? row;
    ranges.push({ upToBytes, isTaken, bytes, otherwise: own.variants.find(isUnconditional) });
    above = upTo;
  });
  return ranges;
}

function isByNetwork({ variants }: TuningRow): boolean {
  const [first] = variants;
  return first !== undefined && !isUnconditional(first);
}

function isUnconditional({ algorithm }: Variant): boolean {
  return !isCollnet(algorithm);
}

function choiceOf(choices: readonly Choice[], variant: Variant | undefined): Choice | undefined {
  const own = choices.filter(({ algorithm }) => algorithm === variant?.algorithm);
  return own.find(({ protocol }) => protocol === variant?.protocol) ?? own[0];
}

/** To four digits. */
function rounded(microseconds: number): number {
  return Number(microseconds.toPrecision(4));
}

function roundedOrNull(microseconds: number | null): number | null {
  return microseconds === null ? null : rounded(microseconds);
}
