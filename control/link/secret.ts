/**
 * Security of links between hosts that do not go through ssh: TLS 1.2 with the job's pre-shared key (RFC 5489: each connection has a fresh
 * session key, so the job's key reveals nothing of earlier traffic). The TLS identity names the client. Ahead of TLS a client sends the job's
 * token, with which the server rejects strangers at the cost of one comparison. An eavesdropper can send the token, too: it only admits to the
 * handshake, and the key authenticates.
 */
import { createHmac } from 'node:crypto';
import type { TlsOptions } from 'node:tls';

/** What an agent needs to connect to the launcher; it reaches the agent over a confidential channel. */
export interface Invitation {
  readonly schemaVersion: 1;
  readonly jobId: string;
  /** SECRET_BYTES, base64. */
  readonly secret: string;
  /** Addresses in the order in which the agent tries them. */
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

/** Token that a client sends first. It reveals nothing of the secret. */
export function tokenOf(secret: Uint8Array): Buffer {
  return createHmac('sha256', secret).update('ncclrun: a call').digest();
}
