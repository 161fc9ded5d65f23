/** What GPUs of a host reach together and in pairs: compared with equal hosts and pairs, and with what the planner expects. */
import type { Finding } from './finding.ts';

export interface GpuRate {
  readonly host: string;
  /** Hosts of one kind are compared: model and number. */
  readonly kind: string;
  /** Two: a pair that sends to each other. All: a sum over all of them. */
  readonly gpus: readonly number[];
  readonly all: boolean;
  /** Bus bandwidth in GB/s; null: it failed, and `error` says why. */
  readonly rate: number | null;
  /** What the planner expects; null: it does not say. */
  readonly predicted: number | null;
  /** Elements that were not what they should be. */
  readonly wrong: number;
  readonly error: string | null;
}

const SLOWER_THAN_EQUALS = 0.9;
const FAR_SLOWER_THAN_EQUALS = 0.8;
/** The planner's figures are of machines that its authors had. */
const SLOWER_THAN_PREDICTED = 0.7;
const MIN_EQUALS = 3;

export function gpuLoadFindings(rates: readonly GpuRate[]): Finding[] {
  return rates.flatMap((one) => [...dataFindings(one), ...rateFindings(one, equalsOf(one, rates))]);
}

/** The same measurement on other hosts, or on other pairs of the same one. */
function equalsOf(one: GpuRate, rates: readonly GpuRate[]): number[] {
  return rates.filter(({ kind, all }) => kind === one.kind && all === one.all).flatMap(({ rate }) => rate ?? []);
}

function subjectOf({ gpus, all }: GpuRate): string {
  return all ? `all ${gpus.length} GPUs` : `GPUs ${gpus.join(' and ')}`;
}

function dataFindings(one: GpuRate): Finding[] {
  const common = { check: 'data.verified', host: one.host, subject: subjectOf(one) };
  if (one.rate === null) return [];
  if (one.wrong === 0) return [{ ...common, answer: 'ok', message: '', remedy: null }];
  const remedy =
    'use none of them until the one is found that changes data: ncclrun perf all_reduce --check; see nvidia-smi -q -d ECC';
  return [{ ...common, answer: 'fail', message: `${one.wrong} elements were wrong`, remedy }];
}

function rateFindings(one: GpuRate, equals: readonly number[]): Finding[] {
  const common = { check: one.all ? 'gpu.bandwidth' : 'gpu.pair-bandwidth', host: one.host, subject: subjectOf(one) };
  if (one.rate === null)
    return [
      {
        ...common,
        answer: 'fail',
        message: one.error ?? 'nothing was measured',
        remedy: 'see ncclrun perf all_reduce --device cuda there',
      },
    ];
  const usual = equals.length < MIN_EQUALS ? null : (equals.toSorted((a, b) => a - b)[equals.length >> 1] ?? null);
  const figure = `${one.rate.toPrecision(3)} GB/s`;
  const expected = one.predicted === null ? '' : `; the planner expects ${one.predicted.toPrecision(3)}`;
  const remedy =
    'see nvidia-smi nvlink --status and nvidia-smi topo -m there, their temperature and clocks under load, and PCIe';
  if (usual !== null && one.rate < SLOWER_THAN_EQUALS * usual) {
    const answer = one.rate < FAR_SLOWER_THAN_EQUALS * usual ? 'fail' : 'warn';
    return [{ ...common, answer, message: `${figure}, others ${usual.toPrecision(3)} GB/s${expected}`, remedy }];
  }
  if (usual === null && one.predicted !== null && one.rate < SLOWER_THAN_PREDICTED * one.predicted)
    return [{ ...common, answer: 'warn', message: `${figure}${expected}`, remedy }];
  return [{ ...common, answer: one.all ? 'note' : 'ok', message: one.all ? `${figure}${expected}` : '', remedy: null }];
}

/** Every two of them, in rounds of disjoint pairs (the circle method). */
export function pairRounds(count: number): (readonly [number, number])[][] {
  const seats = Array.from({ length: count + (count % 2) }, (_, index) => index);
  return Array.from({ length: Math.max(0, seats.length - 1) }, () => {
    const pairs = Array.from({ length: seats.length / 2 }, (_, index): readonly [number, number] => {
      const [one = 0, other = 0] = [seats[index], seats[seats.length - 1 - index]];
      return one < other ? [one, other] : [other, one];
    });
    seats.splice(1, 0, seats.pop() ?? 0);
    return pairs.filter(([, other]) => other < count);
  });
}
