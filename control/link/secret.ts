/**
 * Links between hosts that do not go through ssh: TLS 1.2 with a key that this job alone has (RFC 5489: the key of each connection is made anew,
 * so that who learns the job's key later can read nothing of it). The identity says who calls. Ahead of TLS a caller shows the job's token, which
 * tells those who were invited from strangers at the price of a comparison. Whoever can listen to the network can show it, too: it is a place in
 * the queue, and the key decides.
 */
import { createHmac } from 'node:crypto';
import type { TlsOptions } from 'node:tls';

/** What is told to those who are to call, by a way that keeps it secret. */
export interface Invitation {
  readonly schemaVersion: 1;
  readonly jobId: string;
  /** SECRET_BYTES, base64. */
  readonly secret: string;
  /** Where to call, in the order of trying. */
  readonly addresses: readonly string[];
  readonly port: number;
}

export const SECRET_BYTES = 32;
export const JOB_TOKEN_BYTES = 32;

export const secretTls = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const satisfies TlsOptions;

/** The first bytes of a call. They say nothing of the secret. */
export function tokenOf(secret: Uint8Array): Buffer {
  return createHmac('sha256', secret).update('ncclrun: a call').digest();
}
