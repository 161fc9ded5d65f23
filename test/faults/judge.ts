/** Holds a job's end against what would be right. */
import type { Failure } from '../../launcher/model/failure.ts';
import type { JobResult } from '../../launcher/model/types.ts';
import type { Outcome } from '../rig/command.ts';
import type { Verdict } from './kind.ts';

export interface Struck {
  readonly host: string;
  readonly rank: number;
}

/** Null: it is one of the verdicts; else the sentence that says what it is instead. */
export function judge(
  verdicts: readonly Verdict[],
  { status, stdout }: Outcome,
  result: JobResult | null,
  struck: Struck,
): string | null {
  if (status === 0 && !/^\[0\] all right$/m.test(stdout)) return 'the result of rank 0 is missing';
  const primary = result?.failures[0] ?? null;
  const reason = result?.reason ?? null;
  const right = verdicts.some(
    (verdict) => verdict.status === status && verdict.reason === reason && isNamed(verdict.names, primary, struck),
  );
  if (right) return null;
  const wanted = verdicts.map(
    (verdict) => `${verdict.status} ${verdict.reason ?? 'no result'}, named: ${verdict.names}`,
  );
  return `status ${status}, reason ${reason ?? 'no result'}, ${JSON.stringify(primary)}; wanted ${[...new Set(wanted)].join(' | ')}`;
}

function isNamed(names: Verdict['names'], failure: Failure | null, { host, rank }: Struck): boolean {
  switch (names) {
    case 'nobody':
      return failure === null || !('host' in failure);
    case 'anybody':
      return true;
    case 'host':
      return failure !== null && 'host' in failure && failure.host === host;
    case 'rank':
      if (failure?.type === 'hang') return failure.late.some((who) => who.startsWith(`rank ${rank} on ${host} `));
      return failure !== null && 'rank' in failure && failure.rank === rank && failure.host === host;
    default:
      return names satisfies never;
  }
}
