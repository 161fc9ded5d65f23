/** From a table to a plan's rows: of each measured size the fastest form; what was not measured stays as planned. */
import { COLLECTIVES } from '../../plan/layout.ts';
import type { CollectiveName, Form, TuningRow } from '../../plan/types.ts';
import { rounded } from '../device/host-prediction.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences, Way } from '../input/preferences.ts';
import { withFallback } from './candidates.ts';
import type { MeasuredForm, Table } from './table.ts';
import { crossing, isMeasuredAt, timeAt } from './times.ts';

/** Times differ so much from run to run: within it what is planned stays, and then what was fastest for the size before. */
const NOISE = 1.03;
const MEBIBYTE = 2 ** 20;

interface Allowed {
  readonly preferences: Preferences;
  /** Of the plan. */
  readonly channels: number;
  /** The engine has such a form. */
  readonly has: (collective: CollectiveName, way: Way) => boolean;
  readonly formOf: (form: MeasuredForm) => Form;
}

interface Piece {
  readonly form: MeasuredForm;
  readonly from: number;
  readonly upTo: number;
}

export function measuredRows(planned: readonly TuningRow[], { collectives }: Table, allowed: Allowed): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const own = planned.filter((row) => row.collective === collective);
    const measured = collectives.find((one) => one.collective === collective)?.forms ?? [];
    const pieces = piecesOf(
      measured.filter((form) => isAllowed(collective, form, measured, allowed)),
      (form, bytes) => isSame(form, rowFor(own, bytes)?.forms[0]),
    );
    const [first, last] = [pieces[0], pieces.at(-1)];
    if (first === undefined || last === undefined) return own;
    return [
      ...below(own, first.from),
      ...pieces.map((piece) => rowOf(collective, piece, rowFor(own, piece.from)?.forms.at(-1), allowed)),
      ...own.filter(({ upToBytes }) => upToBytes === null || upToBytes > last.upTo),
    ];
  });
}

function rowFor(rows: readonly TuningRow[], bytes: number): TuningRow | undefined {
  return rows.find(({ upToBytes }) => upToBytes === null || bytes <= upToBytes);
}

type IsPlanned = (form: MeasuredForm, bytes: number) => boolean;

/** What is taken for a size, and its time; null: the table says nothing of this size. */
export function measuredAt(
  forms: readonly MeasuredForm[],
  bytes: number,
  isPlanned: IsPlanned,
): { readonly form: MeasuredForm; readonly microseconds: number } | null {
  const piece = piecesOf(forms, isPlanned).find(({ from, upTo }) => from <= bytes && bytes <= upTo);
  return piece === undefined ? null : { form: piece.form, microseconds: timeAt(piece.form.times, bytes) };
}

function isSame(one: MeasuredForm, other: Form | undefined): boolean {
  return (
    one.algorithm === other?.algorithm &&
    one.protocol === other.protocol &&
    one.channels === other.channels &&
    one.threads === other.threads
  );
}

function isAllowed(
  collective: CollectiveName,
  form: MeasuredForm,
  all: readonly MeasuredForm[],
  { preferences, channels, has }: Allowed,
): boolean {
  const { least, most } = preferences.channels;
  if (!has(collective, form) || !isPreferred(collective, form, preferences)) return false;
  if (form.channels > Math.min(channels, most)) return false;
  // Some ways have no more channels.
  const alike = all.filter(({ algorithm, protocol }) => algorithm === form.algorithm && protocol === form.protocol);
  return (
    form.channels >=
    Math.min(
      least,
      ...alike
        .map((one) => one.channels)
        .toSorted((a, b) => b - a)
        .slice(0, 1),
    )
  );
}

/** From the first measured size to the last one. */
function piecesOf(forms: readonly MeasuredForm[], isPlanned: IsPlanned): Piece[] {
  const sizes = [...new Set(forms.flatMap(({ times }) => times.map(([bytes]) => bytes)))].toSorted((a, b) => a - b);
  const pieces: Piece[] = [];
  let best: MeasuredForm | null = null;
  sizes.forEach((bytes, place) => {
    const next = chosen(forms, bytes, [(form) => isPlanned(form, bytes), (form) => form === best]);
    const before = sizes[place - 1] ?? bytes;
    const previous = pieces.at(-1);
    if (previous === undefined || best === null) pieces.push({ form: next, from: bytes, upTo: bytes });
    else if (next === best) pieces[pieces.length - 1] = { ...previous, upTo: bytes };
    else {
      const upTo = crossing(best.times, next.times, before, bytes);
      pieces[pieces.length - 1] = { ...previous, upTo };
      pieces.push({ form: next, from: upTo + 1, upTo: bytes });
    }
    best = next;
  });
  return pieces;
}

/** The fastest of the first kind that is as fast as any, or simply the fastest. */
function chosen(
  forms: readonly MeasuredForm[],
  bytes: number,
  kinds: readonly ((form: MeasuredForm) => boolean)[],
): MeasuredForm {
  const known = forms
    .filter(({ times }) => isMeasuredAt(times, bytes))
    .toSorted((one, other) => timeAt(one.times, bytes) - timeAt(other.times, bytes));
  const [best] = known;
  if (best === undefined) throw new RangeError(`no form was measured at ${bytes} bytes`);
  const good = known.filter(({ times }) => timeAt(times, bytes) <= NOISE * timeAt(best.times, bytes));
  return kinds.flatMap((isOfKind) => good.find(isOfKind) ?? [])[0] ?? best;
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
  { form, from, upTo }: Piece,
  kernel: Form | undefined,
  { formOf }: Allowed,
): TuningRow {
  const [first, last] = [timeAt(form.times, from), timeAt(form.times, upTo)];
  const slope = upTo === from ? 0 : Math.max(0, (last - first) / (upTo - from));
  // The straight line between the ends; or, where it would come from below nothing, the one from there to the end.
  const isSteep = first < slope * from;
  const perByte = isSteep ? last / upTo : slope;
  const predicted = {
    predictedMicroseconds: rounded(isSteep ? 0 : first - slope * from),
    predictedMicrosecondsPerMebibyte: perByte === 0 ? 0 : rounded(perByte * MEBIBYTE),
  };
  const chosen = { ...formOf(form), ...predicted };
  return { collective, upToBytes: upTo, forms: withFallback(chosen, kernel ?? chosen) };
}
