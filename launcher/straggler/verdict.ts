/** A straggler as a verdict, with what its host says about its process. */
import type { Evidence, Verdict } from '../model/hang.ts';
import { shortRanksText } from '../text/counted.ts';
import { blamedAs, plainVerdict } from '../hang/ends.ts';
import type { Lateness } from './lateness.ts';
import type { CommunicatorTrace } from './traces.ts';

export function stragglerVerdict(trace: CommunicatorTrace, lateness: Lateness, evidence: readonly Evidence[]): Verdict {
  const { ranks, hosts, isHost, operations, last, latenessMs, periodMs, gain } = lateness;
  const who = isHost
    ? `all ranks on ${hosts.join(', ')} (${shortRanksText(ranks)})`
    : `rank ${ranks.join()} on ${hosts.join()}`;
  const begins = isHost ? 'begin' : 'begins';
  const facts = evidence.map(({ kind, value, unit }) => `${kind} ${value}${unit === null ? '' : ` ${unit}`}`);
  const because = facts.length === 0 ? '' : ` (${facts.slice(0, 3).join(', ')})`;
  const message =
    `${who}${because} ${begins} operations last: in ${last} of ${operations}, by ${milliseconds(latenessMs)} of ${milliseconds(periodMs)} ` +
    `between operations of communicator ${trace.id}; without it each would come ${Math.round(gain * 100)} % sooner`;
  const measured: Evidence = {
    kind: 'lateness',
    host: hosts[0] ?? null,
    subject: who,
    value: round(latenessMs),
    unit: 'ms',
  };
  return plainVerdict({
    kind: isHost ? 'straggler-host' : 'straggler-compute',
    confidence: 'likely',
    message,
    blamed: [
      {
        ...blamedAs(ranks, hosts.length === 1 ? (hosts[0] ?? null) : null, 'outside'),
        because: [measured, ...evidence],
      },
    ],
    evidence: [measured, ...evidence],
    communicator: { id: trace.id, epoch: trace.epoch, size: trace.size },
  });
}

export function endText({ ranks, hosts }: Lateness, id: string): string {
  const who =
    ranks.length === 1 ? `rank ${ranks.join()} on ${hosts.join()}` : `${shortRanksText(ranks)} on ${hosts.join(', ')}`;
  return `${who} no longer ${ranks.length === 1 ? 'begins' : 'begin'} the operations of communicator ${id} last`;
}

function milliseconds(value: number): string {
  return `${round(value)} ms`;
}

function round(value: number): number {
  return value < 10 ? Math.round(value * 100) / 100 : Math.round(value * 10) / 10;
}
