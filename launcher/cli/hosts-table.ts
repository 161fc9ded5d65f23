/** An allocation for people: a row per run of hosts that are alike, and the sums. */
import { printableLine } from '../../control/printable.ts';
import type { Hosts } from '../allocation/slots/add-up.ts';
import { counted } from '../text/counted.ts';
import { foldNames } from '../text/fold-names.ts';
import type { HostSlots } from '../model/types.ts';

type Row = readonly [name: string, slots: string, origin: string];

export function hostsTable({ hosts, leftOut }: Hosts): string {
  const rows = [
    ...runsOfAlike(hosts).flatMap(rowsOf),
    ...leftOut.map(({ name, reason }): Row => [printableLine(name), 'not used', printableLine(reason)]),
  ];
  const widths = [0, 1].map((column) => rows.reduce((width, row) => Math.max(width, (row[column] ?? '').length), 0));
  const text = rows.map(([name, slots, origin]) => {
    return `${name.padEnd(widths[0] ?? 0)}   ${slots.padEnd(widths[1] ?? 0)}   ${origin}`.trimEnd();
  });
  return `${[...text, sumText(hosts)].join('\n')}\n`;
}

function rowsOf(run: readonly HostSlots[]): Row[] {
  const [first] = run;
  if (first === undefined) return [];
  const words = foldNames(run.map(({ name }) => name));
  const login = first.user === null ? '' : `${first.user}@`;
  const port = first.port === null ? '' : `, port ${first.port}`;
  return words.map((word) => {
    const each = run.length > 1 && word !== first.name && word.includes('[') ? ' each' : '';
    return [
      printableLine(`${login}${word}`),
      `${tableSlots(first)}${first.slots === null ? '' : each}${maximumText(first)}${port}`,
      printableLine(originText(first)),
    ];
  });
}

/** Origin of the host, and of its number of slots if that differs. */
function originText({ origin }: HostSlots): string {
  const { host, text, kind } = origin;
  if (kind === 'localhost-unlimited' || /^(stated|no count) at /u.test(text)) return host;
  const isPlain = !host.includes('one of ') && !host.includes(';');
  return isPlain && text.includes(' at ') ? text : `${host}; ${text}`;
}

export function slotText({ origin, slots, devices }: HostSlots): string {
  if (origin.kind === 'localhost-unlimited') return 'any number of slots';
  if (slots === null) return 'slots not known yet';
  const which = devices === null ? '' : ` (${devices.join(',')})`;
  return `${counted(slots, 'slot')}${which}`;
}

function tableSlots(host: HostSlots): string {
  return host.slots === null && host.origin.kind === 'detected' ? 'a slot per GPU, else per core' : slotText(host);
}

function maximumText({ maxSlots }: HostSlots): string {
  return maxSlots === null ? '' : `, at most ${maxSlots}`;
}

function sumText(hosts: readonly HostSlots[]): string {
  const slots = hosts.reduce((sum, host) => sum + (host.slots ?? 0), 0);
  const uncounted = hosts.filter((host) => host.slots === null).length;
  if (uncounted === hosts.length) return counted(hosts.length, 'host');
  const unknown = uncounted === 0 ? '' : ` and those of ${counted(uncounted, 'host')} without a number`;
  return `${counted(hosts.length, 'host')}, ${counted(slots, 'slot')}${unknown}`;
}

function runsOfAlike(hosts: readonly HostSlots[]): HostSlots[][] {
  const runs: HostSlots[][] = [];
  for (const host of hosts) {
    const last = runs.at(-1)?.at(-1);
    if (last !== undefined && isAlike(last, host)) runs.at(-1)?.push(host);
    else runs.push([host]);
  }
  return runs;
}

function isAlike(one: HostSlots, other: HostSlots): boolean {
  return rowKey(one) === rowKey(other);
}

function rowKey({ user, port, slots, maxSlots, devices, origin }: HostSlots): string {
  return JSON.stringify([user, port, slots, maxSlots, devices, origin]);
}
