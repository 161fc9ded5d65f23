/** Why a way led nowhere, where the way itself knows it: one shape for every way. */
import type { HostUnreachableFailure } from '../../model/failure.ts';

export interface Trouble {
  readonly cause: HostUnreachableFailure['cause'];
  /** What happened, at most a few lines. */
  readonly detail: string;
  readonly remedy: string | null;
  /** The far side dropped us unheard, as a busy sshd does: another attempt may succeed. */
  readonly transient: boolean;
}

/** A trouble on its way to whoever started the connection. */
export class TroubleError extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.detail);
    this.name = 'TroubleError';
    this.trouble = trouble;
  }
}

export function makeTrouble(
  cause: Trouble['cause'],
  detail: string,
  remedy: string | null,
  transient = false,
): TroubleError {
  return new TroubleError({ cause, detail, remedy, transient });
}
