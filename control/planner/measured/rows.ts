/** From a table to a plan's rows: of each measured size the fastest variant; what was not measured stays as planned. */
import { COLLECTIVES } from '../../plan/layout.ts';
import type { CollectiveName, TuningRow, Variant } from '../../plan/types.ts';
import { rounded } from '../device/host-prediction.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences } from '../input/preferences.ts';
import { withFallback } from './candidates.ts';
import type { MeasuredVariant, Table } from './table.ts';
import { crossingBytes, isMeasuredAt, timeAt } from './times.ts';

/** Times differ so much from run to run: within it what is planned stays, and then what was fastest for the size before. */
const NOISE = 1.03;
const MEBIBYTE = 2 ** 20;

interface RowOptions {
  readonly preferences: Preferences;
  /** Of the plan. */
  readonly channels: number;
  /** The engine has such a variant. */
  readonly has: (collective: CollectiveName, variant: MeasuredVariant) => boolean;
  readonly variantOf: (collective: CollectiveName, variant: MeasuredVariant) => Variant;
}

interface Piece {
  readonly variant: MeasuredVariant;
  readonly from: number;
  readonly upTo: number;
}

export function measuredRows(planned: readonly TuningRow[], { collectives }: Table, options: RowOptions): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const own = planned.filter((row) => row.collective === collective);
    const measured = collectives.find((one) => one.collective === collective)?.variants ?? [];
    const pieces = piecesOf(
      measured.filter((variant) => isEligible(collective, variant, measured, options)),
      (variant, bytes) => isSame(variant, rowFor(own, bytes)?.variants[0]),
    );
    const [first, last] = [pieces[0], pieces.at(-1)];
    if (first === undefined || last === undefined) return own;
    return [
      ...below(own, first.from),
      ...pieces.map((piece) => rowOf(collective, piece, rowFor(own, piece.from)?.variants.at(-1), options)),
      ...own.filter(({ upToBytes }) => upToBytes === null || upToBytes > last.upTo),
    ];
  });
}

function rowFor(rows: readonly TuningRow[], bytes: number): TuningRow | undefined {
  return rows.find(({ upToBytes }) => upToBytes === null || bytes <= upToBytes);
}

type IsPlanned = (variant: MeasuredVariant, bytes: number) => boolean;

/** The variant for a size, and its time; null: the table has no entry for this size. */
export function measuredAt(
  variants: readonly MeasuredVariant[],
  bytes: number,
  isPlanned: IsPlanned,
): { readonly variant: MeasuredVariant; readonly microseconds: number } | null {
  const piece = piecesOf(variants, isPlanned).find(({ from, upTo }) => from <= bytes && bytes <= upTo);
  return piece === undefined ? null : { variant: piece.variant, microseconds: timeAt(piece.variant.times, bytes) };
}

function isSame(one: MeasuredVariant, other: Variant | undefined): boolean {
  return (
    one.algorithm === other?.algorithm &&
    one.protocol === other.protocol &&
    one.channels === other.channels &&
    one.threads === other.threads
  );
}

function isEligible(
  collective: CollectiveName,
  variant: MeasuredVariant,
  all: readonly MeasuredVariant[],
  { preferences, channels, has }: RowOptions,
): boolean {
  const { min: minChannels, max } = preferences.channels;
  if (!has(collective, variant) || !isPreferred(collective, variant, preferences)) return false;
  if (variant.channels > Math.min(channels, max)) return false;
  // Some variants have fewer channels than the minimum.
  const alike = all.filter(
    ({ algorithm, protocol }) => algorithm === variant.algorithm && protocol === variant.protocol,
  );
  return (
    variant.channels >=
    Math.min(
      minChannels,
      ...alike
        .map((one) => one.channels)
        .toSorted((a, b) => b - a)
        .slice(0, 1),
    )
  );
}

/** From the first measured size to the last one. */
function piecesOf(variants: readonly MeasuredVariant[], isPlanned: IsPlanned): Piece[] {
  const sizes = [...new Set(variants.flatMap(({ times }) => times.map(([bytes]) => bytes)))].toSorted((a, b) => a - b);
  const pieces: Piece[] = [];
  let best: MeasuredVariant | null = null;
  sizes.forEach((bytes, index) => {
    const next = chosen(variants, bytes, [(variant) => isPlanned(variant, bytes), (variant) => variant === best]);
    const before = sizes[index - 1] ?? bytes;
    const previous = pieces.at(-1);
    if (previous === undefined || best === null) pieces.push({ variant: next, from: bytes, upTo: bytes });
    else if (next === best) pieces[pieces.length - 1] = { ...previous, upTo: bytes };
    else {
      const upTo = crossingBytes(best.times, next.times, before, bytes);
      pieces[pieces.length - 1] = { ...previous, upTo };
      pieces.push({ variant: next, from: upTo + 1, upTo: bytes });
    }
    best = next;
  });
  return pieces;
}

/** The fastest of the first kind that is as fast as any, or simply the fastest. */
function chosen(
  variants: readonly MeasuredVariant[],
  bytes: number,
  choices: readonly ((variant: MeasuredVariant) => boolean)[],
): MeasuredVariant {
  const known = variants
    .filter(({ times }) => isMeasuredAt(times, bytes))
    .toSorted((one, other) => timeAt(one.times, bytes) - timeAt(other.times, bytes));
  const [best] = known;
  if (best === undefined) throw new RangeError(`no variant was measured at ${bytes} bytes`);
  const good = known.filter(({ times }) => timeAt(times, bytes) <= NOISE * timeAt(best.times, bytes));
  return choices.flatMap((isWanted) => good.find(isWanted) ?? [])[0] ?? best;
}

/** The planned rows for fewer bytes. */
function below(own: readonly TuningRow[], bytes: number): TuningRow[] {
  const begin = own.filter(({ upToBytes }) => upToBytes !== null && upToBytes < bytes - 1);
  const cut = own[begin.length];
  return bytes === 0 || cut === undefined ? begin : [...begin, { ...cut, upToBytes: bytes - 1 }];
}

/** `kernel`: what is planned where ranks do not agree on copies. */
function rowOf(
  collective: CollectiveName,
  { variant, from, upTo }: Piece,
  kernel: Variant | undefined,
  { variantOf }: RowOptions,
): TuningRow {
  const [first, last] = [timeAt(variant.times, from), timeAt(variant.times, upTo)];
  const slope = upTo === from ? 0 : Math.max(0, (last - first) / (upTo - from));
  // The straight line between the ends; or, where it would come from below nothing, the one from there to the end.
  const isSteep = first < slope * from;
  const perByte = isSteep ? last / upTo : slope;
  const predicted = {
    predictedMicroseconds: rounded(isSteep ? 0 : first - slope * from),
    predictedMicrosecondsPerMebibyte: perByte === 0 ? 0 : rounded(perByte * MEBIBYTE),
  };
  const chosen = { ...variantOf(collective, variant), ...predicted };
  return { collective, upToBytes: upTo, variants: withFallback(chosen, kernel ?? chosen) };
}
