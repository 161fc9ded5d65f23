/** What was measured between hosts, as a table of cells: a row for each sender, a column for each receiver. */
import { escaped } from './escaped.ts';
import { unhinderedRate, type MeasuredWay } from './pairs.ts';
import { SLOW } from './rounds.ts';

/** Of more hosts, those of the slowest ways are shown. */
const MAX_HOSTS = 64;
const SOMEWHAT_SLOW = 0.8;
/** As doctor's limit of losses. */
const MAX_LOST = 0.005;

export function pairsSection(ways: readonly MeasuredWay[]): string {
  if (ways.length === 0) return '';
  const hosts = shownHosts(ways);
  const usual = median(ways);
  const heads = hosts.map((host) => `<th scope="col">${escaped(host)}</th>`);
  const rows = hosts.map((from) => {
    const cells = hosts.map((to) =>
      cell(
        ways.filter((way) => way.from === from && way.to === to),
        usual,
      ),
    );
    return `<tr><th scope="row">${escaped(from)}</th>${cells.join('')}</tr>`;
  });
  const all = new Set(ways.flatMap(({ from, to }) => [from, to])).size;
  const left = all > hosts.length ? ` The ${hosts.length} hosts with the slowest paths of ${all} are shown.` : '';
  return `<h2>Between hosts</h2>
<p class="muted">GB/s from each host of a row to those of the columns; the median is ${usual.toPrecision(3)}. Not every two hosts are measured.${left}</p>
<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">from \\ to</th>${heads.join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>`;
}

function median(ways: readonly MeasuredWay[]): number {
  const rates = ways.flatMap((way) => unhinderedRate(way) ?? []).toSorted((one, other) => one - other);
  return rates[rates.length >> 1] ?? 0;
}

function shownHosts(ways: readonly MeasuredWay[]): string[] {
  const slowestFirst = ways.toSorted((one, other) => (unhinderedRate(one) ?? 0) - (unhinderedRate(other) ?? 0));
  const chosen = new Set([...new Set(slowestFirst.flatMap(({ from, to }) => [from, to]))].slice(0, MAX_HOSTS));
  return [...new Set(ways.flatMap(({ from, to }) => [from, to]))].filter((host) => chosen.has(host));
}

/** Several ways: of several rails. */
function cell(ways: readonly MeasuredWay[], usual: number): string {
  if (ways.length === 0) return '<td class="none"></td>';
  const failed = ways.find(({ rate }) => rate === null);
  if (failed !== undefined) return `<td class="fail" title="${escaped(failed.error ?? '')}">failed</td>`;
  const least = Math.min(...ways.map((way) => unhinderedRate(way) ?? 0));
  const lost = Math.max(...ways.map((way) => way.lost ?? 0));
  const colour = least < SLOW * usual || lost > MAX_LOST ? 'fail' : least < SOMEWHAT_SLOW * usual ? 'warn' : 'ok';
  const [first] = ways;
  const details = [
    ...(first?.latencyUs == null ? [] : [`${first.latencyUs.toFixed(1)} µs for 8 bytes`]),
    `${Number((lost * 100).toPrecision(2))} % of the packets sent again`,
    `no processor for ${Math.round((first?.waited ?? 0) * 100)} % of the time`,
  ];
  const shown = ways.map(({ rate }) => (rate ?? 0).toPrecision(3)).join(' + ');
  return `<td class="number ${colour}" title="${escaped(details.join(', '))}">${escaped(shown)}</td>`;
}
