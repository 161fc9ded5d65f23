/** The table of `ncclrun perf`, with the columns of nccl-tests: people and their scripts know them. */
import type { PerfHead, PerfRow } from './perf-rows.ts';
import { counted } from '../text/counted.ts';

const half = (title: string) => title.padStart(18).padEnd(33);

export function tableHead(head: PerfHead): string {
  const measured = `${head.collective} on ${head.ranks} ranks, ${counted(head.hosts, 'host')}, device ${head.device}`;
  return [
    `# ${measured}`,
    `#${' '.repeat(51)}${half('out-of-place')}${half('in-place')}`.trimEnd(),
    `#${columns(['size', 'count', 'type', 'redop', 'root'])}${timeColumns(['time', 'algbw', 'busbw', '#wrong'])}${timeColumns(['time', 'algbw', 'busbw', '#wrong'])}`,
    `#${columns(['(B)', '(elements)', '', '', ''])}${timeColumns(['(us)', '(GB/s)', '(GB/s)', ''])}${timeColumns(['(us)', '(GB/s)', '(GB/s)', ''])}`.trimEnd(),
    '',
  ].join('\n');
}

/** `outOfPlace` and `inPlace` are of one size; either may be missing. */
export function tableRow(outOfPlace: PerfRow | null, inPlace: PerfRow | null): string {
  const row = outOfPlace ?? inPlace;
  if (row === null) return '';
  const first = columns([`${row.bytes}`, `${row.count}`, row.type, row.op, `${row.root}`]);
  return ` ${first}${measurement(outOfPlace)}${measurement(inPlace)}`.trimEnd().concat('\n');
}

/** The closing lines; the average is over all rows, as nccl-tests computes it. */
export function tableFoot(rows: readonly PerfRow[]): string {
  if (rows.length === 0) return '';
  const average = rows.reduce((sum, row) => sum + row.busbw, 0) / rows.length;
  const wrong = wrongElements(rows);
  const checked = wrong === null ? 'not checked' : `${wrong} ${wrong === 0 ? 'OK' : 'FAILED'}`;
  return `# Out of bounds values : ${checked}\n# Avg bus bandwidth    : ${average.toPrecision(6)}\n#\n`;
}

/** Wrong elements in all rows, or null if none was checked. */
export function wrongElements(rows: readonly PerfRow[]): number | null {
  const checked = rows.map((row) => row.wrong).filter((wrong) => wrong !== null);
  return checked.length === 0 ? null : checked.reduce((sum, wrong) => sum + wrong, 0);
}

function columns([size = '', count = '', type = '', op = '', root = '']: readonly string[]): string {
  return `${size.padStart(12)}  ${count.padStart(12)}  ${type.padStart(8)}  ${op.padStart(6)}  ${root.padStart(6)}`;
}

function timeColumns([time = '', algorithm = '', bus = '', wrong = '']: readonly string[]): string {
  return `  ${time.padStart(7)}  ${algorithm.padStart(6)}  ${bus.padStart(6)}  ${wrong.padStart(6)}`;
}

function measurement(row: PerfRow | null): string {
  if (row === null) return timeColumns(['N/A', 'N/A', 'N/A', 'N/A']);
  return timeColumns([microseconds(row.timeUs), row.algbw.toFixed(2), row.busbw.toFixed(2), `${row.wrong ?? 'N/A'}`]);
}

/** At most seven characters while the number fits: 3.21, 321.9, 32190. */
function microseconds(time: number): string {
  if (time < 100) return time.toFixed(2);
  return time < 10_000 ? time.toFixed(1) : time.toFixed(0);
}
