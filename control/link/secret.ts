/**
 * Links between hosts that do not go through ssh: TLS 1.2 with a key that this job alone has (RFC 5489: the key of each connection is made anew,
 * so that who learns the job's key later can read nothing of it). The identity says who calls.
 */
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

export const secretTls = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const satisfies TlsOptions;
