/** Hosts and groups of checks as a table: the worst answer of each. */
import { binarySize } from '../../control/size-text.ts';
import type { HostReadings } from '../../control/readings.ts';
import { counted } from '../text/counted.ts';
import { answers, type Finding } from './finding.ts';
import { escaped } from './escaped.ts';
import type { Examined } from './verdict.ts';

/** Rows at most: a page of more would be no help. */
const MAX_HOSTS = 2000;

/** By the first word of a check. */
const groups: readonly (readonly [name: string, words: readonly string[]])[] = [
  ['reach', ['host', 'name', 'ncclrun', 'os']],
  ['processors', ['cpu', 'cgroup']],
  ['memory', ['memory', 'shared-memory']],
  ['processes', ['process']],
  ['limits', ['limits', 'login', 'system']],
  ['GPUs', ['gpu', 'gpudirect']],
  ['NVLink', ['nvlink']],
  ['PCIe', ['pci']],
  ['InfiniBand, RoCE', ['infiniband', 'roce']],
  ['network', ['network']],
  ['time', ['time']],
  ['files', ['files']],
  ['environment', ['environment', 'slurm']],
];

export function groupOf(check: string): string {
  const word = check.split('.', 1)[0] ?? '';
  return groups.find(([, words]) => words.includes(word))?.[0] ?? 'environment';
}

export function hostsSection({ hosts, findings, read }: Examined): string {
  const own = (host: string | null, group: string): Finding[] =>
    findings.filter((finding) => finding.host === host && groupOf(finding.check) === group);
  const used = groups.map(([name]) => name).filter((name) => findings.some(({ check }) => groupOf(check) === name));
  const row = (host: string | null): string => {
    const readings = read.find(({ name }) => name === host)?.readings;
    const cells = used.map((group) => cell(own(host, group)));
    const facts = readings === undefined ? '' : factsText(readings);
    return `<tr><th scope="row">${host === null ? 'several hosts' : escaped(host)}</th>${cells.join('')}<td class="none">${escaped(facts)}</td></tr>`;
  };
  const rows = hosts.slice(0, MAX_HOSTS).map(row);
  if (findings.some(({ host }) => host === null)) rows.push(row(null));
  const left =
    hosts.length > MAX_HOSTS ? `<p class="muted">${hosts.length - MAX_HOSTS} more hosts are not shown.</p>` : '';
  const heads = [...used, 'what it is'].map((name) => `<th scope="col">${escaped(name)}</th>`);
  return `<h2>Hosts</h2>
<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">host</th>${heads.join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>${left}`;
}

function cell(findings: readonly Finding[]): string {
  const worst = answers.find((answer) => findings.some((finding) => finding.answer === answer));
  if (worst === undefined) return '<td class="none">–</td>';
  const its = findings.filter(({ answer }) => answer === worst);
  if (worst === 'ok') return `<td class="ok" title="${counted(its.length, 'check')}">ok</td>`;
  const title = its.map(({ check, subject, message }) => `${check} ${subject} ${message}`).join('; ');
  return `<td class="${worst}" title="${escaped(title)}">${worst}${its.length > 1 ? ` × ${its.length}` : ''}</td>`;
}

function factsText({ processors, memory, gpus, infiniband, system }: HostReadings): string {
  const [gpu] = gpus.devices ?? [];
  return [
    system.distribution,
    `${processors.online} CPUs`,
    ...(memory.totalBytes === null ? [] : [binarySize(memory.totalBytes)]),
    ...(gpu === undefined ? [] : [`${gpus.devices?.length} × ${gpu.name}, driver ${gpus.driver}`]),
    ...(infiniband.length === 0 ? [] : [counted(infiniband.length, 'RDMA port')]),
  ]
    .filter((text) => text !== '')
    .join(', ');
}
