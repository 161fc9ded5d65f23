/** What a batch keeps of a job's result. */
import type { Failure } from '../../model/failure.ts';
import { exitStatus } from '../../model/failure-error.ts';
import type { JobResult } from '../../model/types.ts';
import { failureText } from '../../report/failure-text.ts';
import type { AttemptEnd, BusySlot, Outcome } from './records.ts';

export function endOf(result: JobResult, endedAt: number): AttemptEnd {
  const [first] = result.failures;
  const lost = new Set(result.failures.flatMap((one) => (isLoss(one) ? [one.host] : [])));
  return {
    schemaVersion: 1,
    outcome: result.ok ? 'success' : outcomeOf(first),
    exitCode: result.exitCode,
    reason: result.reason,
    outOfMemory: first !== undefined && 'outOfMemory' in first && first.outOfMemory,
    sentence: first === undefined ? '' : failureText(first).sentence,
    badHosts: result.hosts.filter(({ state }) => state !== 'ok').map(({ name }) => ({ name, lost: lost.has(name) })),
    busySlots: result.failures.flatMap(busySlotsOf),
    endedAt,
  };
}

/** Of a job that has no result. */
export function endOfFailure(failure: Failure, endedAt: number): AttemptEnd {
  return {
    schemaVersion: 1,
    outcome: outcomeOf(failure),
    exitCode: exitStatus(failure),
    reason: failure.type,
    outOfMemory: false,
    sentence: failureText(failure).sentence,
    badHosts: [],
    busySlots: [],
    endedAt,
  };
}

function isLoss(failure: Failure): failure is Extract<Failure, { readonly host: string }> {
  return failure.type === 'host-lost' || failure.type === 'host-unreachable' || failure.type === 'agent';
}

function busySlotsOf(failure: Failure): BusySlot[] {
  if (failure.type !== 'gpus-busy') return [];
  const { host, gpus } = failure;
  return gpus.flatMap(({ slot }) => (slot === null ? [] : [{ host, slot }]));
}

function outcomeOf(failure: Failure | undefined): Outcome {
  switch (failure?.type) {
    case 'usage':
    case 'hostfile':
    case 'allocation':
    case 'spawn':
    case 'unrepeatable':
      return 'refused';
    case 'gpus-busy':
      return 'busy';
    case 'timeout':
      return 'timed-out';
    case 'host-unreachable':
    case 'agent':
    case 'host-lost':
    case 'spawn-timeout':
    case 'interrupt':
    case 'preflight':
    case 'system':
      return 'interruption';
    case 'rank-exit':
    case 'rank-signal':
    case 'rank-missing':
      return (failure.xids ?? []).length > 0 ? 'interruption' : 'error';
    case 'mpi-abort':
    case 'init-timeout':
    case 'hang':
    case 'output':
    case 'internal':
    case undefined:
      return 'error';
    default:
      return failure satisfies never;
  }
}
