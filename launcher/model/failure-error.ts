/** A failure on its way to whoever reports it, and the exit status each failure stands for. */
import { constants } from 'node:os';
import type { Failure } from './failure.ts';

/** Thrown where a step cannot go on; `message` is for debuggers only, people read report/failure-text.ts. */
export class FailureError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super('message' in failure ? failure.message : failure.type, options);
    this.name = 'FailureError';
    this.failure = failure;
  }
}

export const ExitStatus = {
  ok: 0,
  unrepeatable: 1,
  usage: 2,
  timeout: 124,
  launchFailed: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

/** 128 + the signal's number, as shells say it. */
export function signalStatus(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** The status ncclrun ends with when `failure` is the primary one. */
export function exitStatus(failure: Failure): number {
  switch (failure.type) {
    case 'usage':
    case 'hostfile':
    case 'allocation':
      return ExitStatus.usage;
    case 'unrepeatable':
      return ExitStatus.unrepeatable;
    case 'host-unreachable':
    case 'agent':
    case 'gpus-busy':
    case 'host-lost':
    case 'rank-missing':
    case 'preflight':
    case 'output':
    case 'system':
    case 'internal':
      return ExitStatus.launchFailed;
    case 'spawn':
      if (failure.cause === 'not-found') return ExitStatus.notFound;
      return failure.cause === 'not-executable' ? ExitStatus.notExecutable : ExitStatus.launchFailed;
    case 'rank-exit':
    case 'mpi-abort':
      return failure.exitCode;
    case 'rank-signal':
    case 'interrupt':
      return signalStatus(failure.signal);
    case 'timeout':
    case 'spawn-timeout':
    case 'init-timeout':
    case 'hang':
      return ExitStatus.timeout;
    default:
      return unreachable(failure);
  }
}

function unreachable(failure: never): never {
  throw new TypeError(`a failure of unknown type: ${JSON.stringify(failure)}`);
}
