/** What doctor's findings mean for a job that is about to start: failures keep it from starting, warnings are told. */
import { counted } from '../text/counted.ts';
import type { Failure } from '../model/failure.ts';
import { answers, type Finding } from './finding.ts';
import { groupsOf, placedText } from './text.ts';

/** A sentence for each warning, equal ones of several hosts in one, and one of what was looked at. */
export function noticesOf(findings: readonly Finding[], hosts: number, seconds: number): string[] {
  const told = answers
    .filter((answer) => answer === 'warn' || answer === 'unknown')
    .flatMap((answer) => groupsOf(findings.filter((finding) => finding.answer === answer)));
  const ok = findings.filter(({ answer }) => answer === 'ok').length;
  return [
    ...told.map((group) => {
      const remedy = group[0]?.remedy ?? null;
      return `doctor: ${group[0]?.check} ${placedText(group)}${remedy === null ? '' : `; next: ${remedy}`}`;
    }),
    `doctor looked at ${counted(hosts, 'host')} for ${seconds.toFixed(1)} s: ${counted(ok, 'check')} ok, ${counted(told.length, 'warning')}`,
  ];
}

/** Null: nothing keeps the job from starting. */
export function failuresOf(findings: readonly Finding[]): Failure | null {
  const bad = findings.filter(({ answer }) => answer === 'fail');
  if (bad.length === 0) return null;
  return {
    type: 'preflight',
    hosts: [...new Set(bad.flatMap(({ host }) => host ?? []))],
    findings: groupsOf(bad).map((group) => ({
      check: group[0]?.check ?? '',
      message: placedText(group),
      remedy: group[0]?.remedy ?? null,
    })),
  };
}
