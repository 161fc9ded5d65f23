/** What a measured variant takes for sizes between those that were measured. */
import type { AlgorithmAndProtocol } from '../input/preferences.ts';
import type { MeasuredTimes, MeasuredVariant } from './table.ts';

/** Microseconds: straight from one measured size to the next; beyond them as the nearest two go on, never less than the nearest. */
export function timeAt(times: MeasuredTimes, bytes: number): number {
  const above = times.findIndex(([size]) => size >= bytes);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) return Infinity;
  if (above === 0) return first[1];
  const end = times[above === -1 ? times.length - 1 : above] ?? last;
  const begin = times[above === -1 ? times.length - 2 : above - 1];
  if (begin === undefined) return end[1];
  const perByte = (end[1] - begin[1]) / (end[0] - begin[0]);
  const time = begin[1] + perByte * (bytes - begin[0]);
  return above === -1 ? Math.max(end[1], time) : time;
}

export function isMeasuredAt(times: MeasuredTimes, bytes: number): boolean {
  return times.some(([size]) => size === bytes);
}

/** Microseconds, with the number of channels that was the fastest; null: it was not measured for about so many bytes. */
export function fastestAt(
  variants: readonly MeasuredVariant[],
  { algorithm, protocol }: AlgorithmAndProtocol,
  bytes: number,
): number | null {
  const known = variants.filter(
    (one) =>
      one.algorithm === algorithm &&
      one.protocol === protocol &&
      bytes >= (one.times[0]?.[0] ?? Infinity) &&
      bytes <= (one.times.at(-1)?.[0] ?? 0),
  );
  return known.length === 0 ? null : Math.min(...known.map(({ times }) => timeAt(times, bytes)));
}

/** The size up to which `one`, the faster at `from`, stays so, where `other` is the faster at `to`. */
export function crossingBytes(one: MeasuredTimes, other: MeasuredTimes, from: number, to: number): number {
  const known = [one, other].every((times) => isMeasuredAt(times, from) && isMeasuredAt(times, to));
  // One that was not measured at both ends was far behind there: the middle of sizes that are factors apart.
  if (!known) return Math.floor(Math.sqrt(from * to));
  const ahead = timeAt(other, from) - timeAt(one, from);
  const behind = timeAt(one, to) - timeAt(other, to);
  if (ahead + behind <= 0) return Math.floor(Math.sqrt(from * to));
  const share = Math.min(1, Math.max(0, ahead / (ahead + behind)));
  return Math.min(to - 1, Math.max(from, Math.floor(from + share * (to - from))));
}
