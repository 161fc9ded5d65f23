/** What people read of doctor: what is wrong first, equal findings of several hosts in one line. */
import { printableLine } from '../../control/printable.ts';
import type { Paint } from '../text/colour.ts';
import { counted } from '../text/counted.ts';
import { foldNames } from '../text/fold-names.ts';
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

function groupsOf(findings: readonly Finding[]): (readonly Finding[])[] {
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
  const { answer, check, subject, message, remedy } = finding;
  const hosts = hostsText(group.flatMap(({ host }) => host ?? []));
  const where = [hosts, subject].filter((part) => part !== '').join(' ');
  const head = `${paint(colours[answer], answer.padEnd(7))} ${paint('bold', check)}`;
  const sentence = [where, message].filter((part) => part !== '').join(': ');
  const line = `${head}${sentence === '' ? '' : `  ${printableLine(sentence)}`}\n`;
  return remedy === null ? line : `${line}        ${paint('dim', 'next:')} ${printableLine(remedy)}\n`;
}

function hostsText(names: readonly string[]): string {
  const folded = foldNames(names);
  if (folded.length <= MAX_HOSTS) return folded.join(', ');
  return `${folded.slice(0, MAX_HOSTS).join(', ')} and ${folded.length - MAX_HOSTS} more`;
}
