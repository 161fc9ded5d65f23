/** What doctor's findings come to: its exit status and its document. */
import type { Finding, ReadHost } from './finding.ts';
import type { MeasuredWay } from './pairs.ts';

/** A host that was not reached, or that answered nothing of use. */
export const REACHED = 'host.reached';

/** 125: a host was not reached. 1: something is wrong, or could not be checked. */
export function statusOf(findings: readonly Finding[], warningsCount: boolean): number {
  if (findings.some(({ check, answer }) => check === REACHED && answer === 'fail')) return 125;
  const bad = findings.some(
    ({ answer }) => answer === 'fail' || answer === 'unknown' || (warningsCount && answer === 'warn'),
  );
  return bad ? 1 : 0;
}

export interface Examined {
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly hosts: readonly string[];
  /** Of those that were reached. */
  readonly read: readonly ReadHost[];
  readonly findings: readonly Finding[];
  /** Between hosts; empty where nothing was measured. */
  readonly ways: readonly MeasuredWay[];
}

export function documentOf(
  { hosts, findings, ways, takenAt }: Omit<Examined, 'read'>,
  seconds: number,
  exitCode: number,
) {
  return {
    schemaVersion: 1,
    ok: exitCode === 0,
    exitCode,
    takenAt,
    seconds: Math.round(seconds * 1000) / 1000,
    hosts,
    findings,
    ways,
  };
}
