/** Messages that find out by which addresses hosts of a job reach each other, where some have several. */

/** Payload of FrameKind.reach. */
export type ReachQuestion =
  /** Listen for other hosts; `listening` answers. */
  | { readonly type: 'listen' }
  /** Try the addresses of those hosts; `reached` answers. */
  | { readonly type: 'probe'; readonly targets: readonly ReachTarget[] };

export interface ReachTarget {
  readonly host: string;
  /** Best first. */
  readonly addresses: readonly string[];
  /** Own addresses from which to connect to those of `addresses` in their order; null: the system chooses. */
  readonly sources: readonly string[] | null;
  readonly port: number;
  /** True to try every address with a longer timeout; else the agent stops when the best address has answered. */
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
  /** Per target, the addresses at which that host answered, best first. */
  | { readonly type: 'reached'; readonly found: readonly (readonly string[])[] };

const SIGN_DIGITS = 32;

/** Greeting of a host to each connection, which distinguishes it from another host with the same address. */
export function signOf(jobId: string, host: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(`${jobId} ${host}`).digest('hex').slice(0, SIGN_DIGITS);
}
