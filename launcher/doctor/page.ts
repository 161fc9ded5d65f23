/** The page of `ncclrun doctor --html`: one file without a script that loads nothing. Every text in it is escaped. */
import { counted } from '../text/counted.ts';
import type { Change } from './compare.ts';
import { escaped } from './escaped.ts';
import { answers, type Answer, type Finding } from './finding.ts';
import { hostsSection } from './page-hosts.ts';
import { pairsSection } from './page-pairs.ts';
import { groupsOf, placedText } from './text.ts';
import type { Examined } from './verdict.ts';

export interface Page {
  readonly found: Examined;
  readonly seconds: number;
  /** Null: nobody asked. */
  readonly since: { readonly takenAt: number; readonly changes: readonly Change[] } | null;
}

const nouns: Readonly<Record<Answer, string>> = {
  fail: 'failure',
  warn: 'warning',
  unknown: 'unknown answer',
  note: 'note',
  ok: 'check ok',
};

/** `template`: as the build has made it. */
export function doctorPage(template: string, { found, seconds, since }: Page): string {
  const title = `ncclrun doctor, ${counted(found.hosts.length, 'host')}, ${timeText(found.takenAt)}`;
  const body = [
    header(found, seconds),
    findingsSection(found.findings),
    since === null ? '' : sinceSection(since),
    hostsSection(found),
    pairsSection(found.ways),
    '<h2>What is in this file</h2>\n<p class="muted">Names of hosts, of their parts and of the software on them, and what was measured. It loads nothing and runs nothing.</p>',
  ];
  return template.replace('<!--title-->', () => escaped(title)).replace('<!--body-->', () => body.join('\n'));
}

function header({ hosts, findings, takenAt }: Examined, seconds: number): string {
  const count = (answer: Answer): number => findings.filter((finding) => finding.answer === answer).length;
  const chips = answers
    .filter((answer) => count(answer) > 0)
    .map(
      (answer) =>
        `<li class="${answer}">${answer === 'ok' ? `${count(answer)} checks ok` : counted(count(answer), nouns[answer])}</li>`,
    );
  const bad = new Set(findings.filter(({ answer }) => answer === 'fail').map(({ host }) => host));
  const verdict = bad.size === 0 ? 'No machine has failed a check' : 'Which machine is bad?';
  return `<header><h1>${verdict}</h1>
<p class="muted">${counted(hosts.length, 'host')}, ${timeText(takenAt)}, ${seconds.toFixed(1)} s</p>
<ul class="chips">${chips.join('')}</ul></header>`;
}

function timeText(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function findingsSection(findings: readonly Finding[]): string {
  const groups = answers
    .filter((answer) => answer !== 'ok')
    .flatMap((answer) => groupsOf(findings.filter((finding) => finding.answer === answer)));
  if (groups.length === 0) return '<h2>Findings</h2>\n<p>Nothing is wrong.</p>';
  const items = groups.map((group) => {
    const { answer = 'note', check = '', remedy = null } = group[0] ?? {};
    const next = remedy === null ? '' : `<p class="next">${escaped(remedy)}</p>`;
    return `<li><span class="tag ${answer}">${answer}</span> <code>${escaped(check)}</code><p>${escaped(placedText(group))}</p>${next}</li>`;
  });
  return `<h2>Findings</h2>\n<ol class="findings">\n${items.join('\n')}\n</ol>`;
}

function sinceSection({ takenAt, changes }: NonNullable<Page['since']>): string {
  const rows = changes.map(({ kind, host, message }) => {
    const colour = kind === 'gone' ? 'ok' : kind === 'changed' ? 'note' : 'warn';
    return `<tr><td class="${colour}">${kind}</td><td>${escaped(host ?? '')}</td><td>${escaped(message)}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? '<p>Nothing has changed.</p>'
      : `<div class="scroll" tabindex="0"><table><thead><tr><th>change</th><th>host</th><th>what</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`;
  return `<h2>Since ${timeText(takenAt)}</h2>\n${table}`;
}
