/** Why a connection failed, as the remote shell knows it: one shape for all of them. */
import type { HostUnreachableFailure } from '../../model/failure.ts';

export interface ConnectionProblem {
  readonly cause: HostUnreachableFailure['cause'];
  /** What happened, at most a few lines. */
  readonly detail: string;
  readonly remedy: string | null;
  /** The far side dropped us unheard, as a busy sshd does: another attempt may succeed. */
  readonly transient: boolean;
  /** The far side speaks ssh, but the two have no algorithm in common: another ssh may have. */
  readonly isForAnother?: true;
}

/** A problem, thrown to whoever started the connection. */
export class ConnectionError extends Error {
  readonly problem: ConnectionProblem;

  constructor(problem: ConnectionProblem) {
    super(problem.detail);
    this.name = 'ConnectionError';
    this.problem = problem;
  }
}

export function makeConnectionError(
  cause: ConnectionProblem['cause'],
  detail: string,
  remedy: string | null,
  transient = false,
): ConnectionError {
  return new ConnectionError({ cause, detail, remedy, transient });
}
