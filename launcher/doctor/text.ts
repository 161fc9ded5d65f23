/** What people read of doctor: what is wrong first, equal findings of several hosts in one line. */
import { printableLine } from '../../control/printable.ts';
import type { Paint } from '../text/colour.ts';
import { counted } from '../text/counted.ts';
import { foldNames } from '../text/fold-names.ts';
import type { Change } from './compare.ts';
import { answers, type Answer, type Finding } from './finding.ts';

/** Names of hosts in front of a finding. */
const MAX_HOSTS = 6;

const colours: Readonly<Record<Answer, 'red' | 'yellow' | 'dim'>> = {
  fail: 'red',
  warn: 'yellow',
  unknown: 'yellow',
  note: 'dim',
  ok: 'dim',
};

/** `all`: what is well, too. */
export function findingsText(findings: readonly Finding[], all: boolean, paint: Paint): string {
  const shown = answers.filter((answer) => all || answer !== 'ok');
  return shown
    .flatMap((answer) => groupsOf(findings.filter((finding) => finding.answer === answer)))
    .map((group) => groupText(group, paint))
    .join('');
}

/** `8 hosts: 1 fail, 2 notes; 311 checks ok` */
export function summaryText(findings: readonly Finding[], hosts: number, seconds: number): string {
  const count = (answer: Answer): number => findings.filter((finding) => finding.answer === answer).length;
  const found = [
    [count('fail'), 'failure'],
    [count('warn'), 'warning'],
    [count('unknown'), 'unknown answer'],
    [count('note'), 'note'],
  ] as const;
  const parts = found.filter(([number]) => number > 0).map(([number, noun]) => counted(number, noun));
  const wrong = parts.length === 0 ? 'nothing wrong' : parts.join(', ');
  return `${counted(hosts, 'host')}, ${seconds.toFixed(1)} s: ${wrong}; ${counted(count('ok'), 'check')} ok\n`;
}

/** `since 29 Nov 2026, 17:10: h2 grew mlx5_0 port 1: symbol_error by 12` */
export function changesText(changes: readonly Change[], takenAt: number, paint: Paint): string {
  const since = `since ${new Date(takenAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  if (changes.length === 0) return `${since}: nothing has changed\n`;
  const lines = changes.map(({ kind, host, message }) => {
    const colour = kind === 'gone' || kind === 'changed' ? 'dim' : 'yellow';
    const where = host === null ? '' : `${host} `;
    return `  ${paint(colour, kind.padEnd(7))} ${printableLine(`${where}${message}`)}\n`;
  });
  return `${since}:\n${lines.join('')}`;
}

/** Equal findings of several hosts together. */
export function groupsOf(findings: readonly Finding[]): (readonly Finding[])[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const { check, subject, message, remedy } = finding;
    const key = finding.answer === 'ok' ? check : JSON.stringify([check, subject, message, remedy]);
    groups.set(key, [...(groups.get(key) ?? []), finding]);
  }
  return [...groups.values()];
}

function groupText(group: readonly Finding[], paint: Paint): string {
  const [finding] = group;
  if (finding === undefined) return '';
  const { answer, check, remedy } = finding;
  const head = `${paint(colours[answer], answer.padEnd(7))} ${paint('bold', check)}`;
  const sentence = placedText(group);
  const line = `${head}${sentence === '' ? '' : `  ${printableLine(sentence)}`}\n`;
  return remedy === null ? line : `${line}        ${paint('dim', 'next:')} ${printableLine(remedy)}\n`;
}

/** `h[1-2] /dev/shm: 0 bytes are free`; `group`: equal findings. */
export function placedText(group: readonly Finding[]): string {
  const hosts = hostsText(group.flatMap(({ host }) => host ?? []));
  const where = [hosts, group[0]?.subject ?? ''].filter((part) => part !== '').join(' ');
  return [where, group[0]?.message ?? ''].filter((part) => part !== '').join(': ');
}

function hostsText(names: readonly string[]): string {
  const folded = foldNames(names);
  if (folded.length <= MAX_HOSTS) return folded.join(', ');
  return `${folded.slice(0, MAX_HOSTS).join(', ')} and ${folded.length - MAX_HOSTS} more`;
}
