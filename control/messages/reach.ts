/** By which addresses hosts of a job reach each other: what the launcher asks where some have several, and what agents answer. */

/** Payload of FrameKind.reach. */
export type ReachQuestion =
  /** Listen for the others; `listening` answers. */
  | { readonly type: 'listen' }
  /** Which addresses lead to those hosts? `reached` answers. */
  | { readonly type: 'probe'; readonly targets: readonly ReachTarget[] };

export interface ReachTarget {
  readonly host: string;
  /** Best first. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** All addresses are tried to the end, and longer; else the first one is enough, if it is the best. */
  readonly thorough: boolean;
}

/**
 * Milliseconds within which an address has to answer. TCP sends a SYN that was lost again after 1 s, and once more after 3 s: a thorough try
 * outlasts both, because a packet lost under load does not make a host unreachable.
 */
export function limitOf(thorough: boolean): number {
  return thorough ? 4000 : 300;
}

/** Both are AgentReports. */
export type ReachAnswer =
  | { readonly type: 'listening'; readonly port: number }
  /** By target: the addresses at which that host answered, best first. */
  | { readonly type: 'reached'; readonly found: readonly (readonly string[])[] };

const SIGN_DIGITS = 32;

/** What a host says to whoever connects, so that it is not taken for another one that has the same address. */
export function signOf(jobId: string, host: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(`${jobId} ${host}`).digest('hex').slice(0, SIGN_DIGITS);
}
