/** Which measurements are stored: those whose rounds took about as long. */
import { FailureError } from '../model/failure-error.ts';
import { counted } from '../text/counted.ts';
import type { TuneRow } from './lines.ts';

interface Repeatable {
  readonly kept: readonly TuneRow[];
  /** A sentence about how far rounds differed, and what is left out. */
  readonly remark: string;
}

/**
 * Leaves out each measurement whose rounds differed by more than `maxSpread` of their median, and a size where that concerns the fastest or the
 * planned variant: without these the others would decide. Throws a FailureError where nothing is left, or where more than half of all
 * measurements would be left out: the hosts are busy.
 */
export function repeatable(bySize: readonly (readonly TuneRow[])[], maxSpread: number): Repeatable {
  const sizes = bySize.map((rows) => keptOf(rows, maxSpread));
  const kept = sizes.flat();
  const all = bySize.flat();
  const lost = sizes.filter((rows, index) => rows.length === 0 && bySize[index]?.length !== 0).length;
  if (kept.length === all.length)
    return {
      kept,
      remark: `the rounds of a time varied by ${percent(medianSpread(all))} (median), at most by ${percent(greatestSpread(all))}`,
    };
  const limit = `${percent(maxSpread)} between rounds (median: ${percent(medianSpread(all))})`;
  if (kept.length === 0) throw unrepeatable(`the times of every size varied by more than ${limit}`, bySize);
  const unsteady = `${all.length - kept.length} of ${all.length} times varied by more than ${limit}`;
  if (!isEnough(sizes, all.length))
    throw unrepeatable(`${unsteady}, or are of sizes whose fastest or planned variant did`, bySize);
  const whole = lost === 0 ? '' : `; of ${counted(lost, 'size')} nothing is`;
  return {
    kept,
    remark: `${unsteady} and are not stored${whole}`,
  };
}

/** Where most measurements differ, those that agree do so by chance. */
function isEnough(kept: readonly (readonly TuneRow[])[], all: number): boolean {
  return kept.flat().length * 2 >= all;
}

/** `why`: what varied, with numbers. */
function unrepeatable(why: string, bySize: readonly (readonly TuneRow[])[]): FailureError {
  const all = bySize.flat();
  const spreads = all.map(({ spread }) => spread).toSorted((one, other) => one - other);
  const enough = spreads.find((limit) =>
    isEnough(
      bySize.map((rows) => keptOf(rows, limit)),
      all.length,
    ),
  );
  return new FailureError({
    type: 'unrepeatable',
    message: `nothing is stored: ${why}`,
    remedy: `run it again when nothing else runs on the hosts (top shows what does), or allow more: --max-spread ${Math.ceil((enough ?? 0) * 100)}`,
  });
}

/** `rows`: of one collective and size. */
function keptOf(rows: readonly TuneRow[], maxSpread: number): TuneRow[] {
  const isSteady = ({ spread }: TuneRow): boolean => spread <= maxSpread;
  const fastest = rows.toSorted((one, other) => one.timeUs - other.timeUs)[0];
  const decides = rows.filter((row) => row === fastest || row.planned);
  return decides.every(isSteady) ? rows.filter(isSteady) : [];
}

function medianSpread(rows: readonly TuneRow[]): number {
  const spreads = rows.map(({ spread }) => spread).toSorted((one, other) => one - other);
  return spreads[Math.floor(spreads.length / 2)] ?? 0;
}

function greatestSpread(rows: readonly TuneRow[]): number {
  return rows.reduce((greatest, { spread }) => Math.max(greatest, spread), 0);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
