/** The table of `ncclrun perf net`: a line for each direction of a pair, then what is far slower, and a matrix of hosts. */
import { columns } from '../text/columns.ts';
import { counted } from '../text/counted.ts';
import { printableLine } from '../../control/printable.ts';
import { mediansOf, slownessOf } from './net-medians.ts';
import type { NetMedians } from './net-medians.ts';
import { isMeasured } from './net-rows.ts';
import type { MeasuredPair, NetHost, NetPair } from './net-rows.ts';

export interface NetRun {
  readonly network: string;
  readonly hosts: readonly NetHost[];
  /** As the user wrote them: "64K". */
  readonly sizes: readonly string[];
}

const NUMBER_COLUMNS = 8;

export function netHead({ network, hosts, sizes }: NetRun): string {
  const nics = counted(hosts[0]?.nics.length ?? 0, 'NIC');
  const width = endWidth(hosts);
  const numbers = (titles: readonly string[]): string =>
    titles.map((title) => ` ${title.padStart(NUMBER_COLUMNS)}`).join('');
  const ends = `${'from'.padEnd(width)}  ${'to'.padEnd(width)}`;
  return [
    `# network ${network}, ${counted(hosts.length, 'host')}, ${nics} each; one pair after another`,
    `# ${' '.repeat(ends.length)} ${'latency (us)'.padStart(2 * NUMBER_COLUMNS + 1)}  GB/s by size of messages`,
    `# ${ends}${numbers(['median', '99 %', ...sizes])}`,
    '',
  ].join('\n');
}

export function netRow(pair: NetPair, { hosts }: NetRun): string {
  const width = endWidth(hosts);
  const ends = `${fromText(pair, hosts).padEnd(width)}  ${toText(pair, hosts).padEnd(width)}`;
  if (!isMeasured(pair)) return `  ${ends}  failed: ${printableLine(pair.error)}\n`;
  const numbers = [pair.latencyUs, pair.latency99Us, ...pair.gigabytes];
  return `  ${ends}${numbers.map((value) => ` ${value.toFixed(2).padStart(NUMBER_COLUMNS)}`).join('')}\n`;
}

/** Nothing where no pair came through. */
export function netFoot(pairs: readonly NetPair[], run: NetRun): string {
  const failed = pairs.filter((pair) => !isMeasured(pair)).length;
  const failures = failed === 0 ? [] : [`# ${failed} of ${pairs.length} failed`];
  const medians = mediansOf(pairs);
  if (medians === null) return [...failures, ''].join('\n');
  const rates = medians.gigabytes.map((value, size) => `${value.toFixed(2)} GB/s at ${run.sizes[size]}`).join(', ');
  const slow = pairs.filter(isMeasured).flatMap((pair) => slowLine(pair, medians, run) ?? []);
  const found = slow.length === 0 ? '# no pair is far slower than the median' : '# far slower than the median:';
  const matrices = run.hosts.length < 3 ? [] : [matrix(pairs, medians, run)];
  const median = `# median: ${medians.latencyUs.toFixed(2)} us, ${rates}`;
  return [...failures, median, found, ...slow, ...matrices, ''].join('\n');
}

/** "#   a eth0 to b eth0: latency 90.00 us, 0.10 GB/s at 1M"; null: it is not slow. */
function slowLine(pair: MeasuredPair, medians: NetMedians, { hosts, sizes }: NetRun): string | null {
  const slow = slownessOf(pair, medians);
  const reasons = [
    ...(slow.latency ? [`latency ${pair.latencyUs.toFixed(2)} us`] : []),
    ...pair.gigabytes.flatMap((value, size) =>
      slow.gigabytes[size] === true ? [`${value.toFixed(2)} GB/s at ${sizes[size]}`] : [],
    ),
  ];
  if (reasons.length === 0) return null;
  return `#   ${fromText(pair, hosts)} to ${toText(pair, hosts)}: ${reasons.join(', ')}`;
}

/** Of two hosts the slowest of their NICs: by row the sender, by column the receiver. */
function matrix(pairs: readonly NetPair[], medians: NetMedians, { hosts, sizes }: NetRun): string {
  const last = sizes.length - 1;
  const latency = cells(pairs, hosts, (its) => {
    const worst = Math.max(...its.map(({ latencyUs }) => latencyUs));
    return `${worst.toFixed(2)}${its.some((pair) => slownessOf(pair, medians).latency) ? '*' : ''}`;
  });
  const rate = cells(pairs, hosts, (its) => {
    const worst = Math.min(...its.map(({ gigabytes }) => gigabytes[last] ?? 0));
    return `${worst.toFixed(2)}${its.some((pair) => slownessOf(pair, medians).gigabytes[last] === true) ? '*' : ''}`;
  });
  const marks = '* far slower than the median, x failed';
  return [
    `#\n# latency (us) from row to column; ${marks}`,
    latency,
    `# GB/s of ${sizes[last]} from row to column; ${marks}`,
    rate,
  ].join('\n');
}

function cells(
  pairs: readonly NetPair[],
  hosts: readonly NetHost[],
  cell: (measured: readonly MeasuredPair[]) => string,
): string {
  const rows = hosts.map(({ host, name }) => [
    name,
    ...hosts.map((other) => {
      const its = pairs.filter(({ from, to }) => from === host && to === other.host);
      if (its.length === 0) return '-';
      return its.every(isMeasured) ? cell(its.filter(isMeasured)) : 'x';
    }),
  ]);
  return columns([['', ...hosts.map(({ name }) => name)], ...rows])
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => `#   ${text}`)
    .join('\n');
}

function fromText({ from, fromNic }: NetPair, hosts: readonly NetHost[]): string {
  return endText(hosts[from], fromNic);
}

function toText({ to, toNic }: NetPair, hosts: readonly NetHost[]): string {
  return endText(hosts[to], toNic);
}

/** "node1 mlx5_0:1", "node1 eth0" */
function endText(host: NetHost | undefined, index: number): string {
  const nic = host?.nics[index];
  const port = nic === undefined || nic.port === 0 ? '' : `:${nic.port}`;
  return printableLine(`${host?.name ?? '?'} ${nic?.name ?? index}${port}`);
}

function endWidth(hosts: readonly NetHost[]): number {
  const ends = hosts.flatMap((host) => host.nics.map((_, index) => endText(host, index)));
  return ends.reduce((widest, { length }) => Math.max(widest, length), 'from'.length);
}
