/** Connects to the launcher that sent an invitation. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { secretTls, tokenOf, type Invitation } from './secret.ts';
import { messageOf } from '../message-of.ts';

/** Time given to one address before the next is tried in parallel. */
const HEAD_START_MS = 250;
/** Pause before the first retry; doubles up to the maximum. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

/** The launcher closed the connection before both sides had shown the key; a retry may succeed. */
class ClosedError extends Error {}

interface CallOptions {
  readonly limitMs: number;
  /** Receives the reason of a failed call before the retry. */
  readonly onRetry?: (why: string) => void;
}

/** Resolves to a connection on which both sides have shown the key. Rejects after `limitMs` with the addresses tried. */
export async function call(
  invitation: Invitation,
  identity: string,
  { limitMs, onRetry }: CallOptions,
): Promise<TLSSocket> {
  const deadline = new AbortController();
  const limit = setTimeout(() => deadline.abort(), limitMs); // keeps the process alive until the launcher has answered
  let calls = 0;
  /** What closed connections said; the limit may pass during a later call, which says less. */
  let closed: ClosedError | null = null;
  try {
    for (let max = FIRST_PAUSE_MS; ; max = Math.min(2 * max, LONGEST_PAUSE_MS)) {
      calls += 1;
      try {
        return await callOnce(invitation, identity, deadline.signal);
      } catch (error) {
        if (error instanceof ClosedError) closed = error;
        else if (closed === null || !deadline.signal.aborted) throw error;
        const pauseMs = max / 2 + Math.random() * (max / 2);
        if (await passes(pauseMs, deadline.signal)) onRetry?.(closed.message);
        else throw new Error(`${closed.message} (${calls} calls in ${limitMs / 1000} s)`, { cause: error });
      }
    }
  } finally {
    clearTimeout(limit);
  }
}

/** One call without retry. */
export async function callOnce(invitation: Invitation, identity: string, deadline: AbortSignal): Promise<TLSSocket> {
  const found = new AbortController();
  const enough = AbortSignal.any([deadline, found.signal]);
  const { addresses, port } = invitation;
  const problems: string[] = [];
  const attempts: Socket[] = [];
  const tried = addresses.map(async (host, index) => {
    if (!(await passes(index * HEAD_START_MS, enough))) throw new Error('no answer');
    const socket = connectTcp({ host, port });
    attempts.push(socket);
    try {
      await once(socket, 'connect', { signal: enough });
    } catch (error) {
      problems.push(`${host}: ${deadline.aborted ? 'no answer' : messageOf(error)}`);
      throw error;
    }
    return socket;
  });
  try {
    const first = await Promise.any(tried);
    found.abort();
    for (const socket of attempts) if (socket !== first) socket.destroy();
    return await shake(first, invitation, identity, deadline);
  } catch (error) {
    for (const socket of attempts) socket.destroy();
    const how = error instanceof AggregateError ? problems.join('; ') : messageOf(error);
    const message = `the launcher cannot be reached at port ${port}: ${how || 'no address was given'}`;
    throw error instanceof ClosedError ? new ClosedError(message) : new Error(message, { cause: error });
  }
}

function shake(socket: Socket, { secret }: Invitation, identity: string, signal: AbortSignal): Promise<TLSSocket> {
  const { remoteAddress } = socket;
  const key = Buffer.from(secret, 'base64');
  socket.write(tokenOf(key));
  const tls = connectTls({
    ...secretTls,
    socket,
    pskCallback: () => ({ psk: key, identity }),
    checkServerIdentity: () => undefined, // The launcher has no certificate; the key proves its identity.
  });
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new Error(`${remoteAddress}: no answer to the handshake`));
    signal.addEventListener('abort', giveUp);
    const closed = (): void =>
      reject(new ClosedError(`${remoteAddress}: the connection was closed before the handshake was done`));
    // A launcher with another key sends an alert; any other error means that the connection has ended.
    tls.on('error', (error) => (isAlert(error) ? reject(error) : closed()));
    tls.once('close', closed);
    socket.once('close', closed);
    tls.once('secureConnect', () => {
      signal.removeEventListener('abort', giveUp);
      tls.removeAllListeners('error');
      tls.removeListener('close', closed);
      socket.removeListener('close', closed);
      tls.setNoDelay(true);
      resolve(tls);
    });
  });
}

function isAlert(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && error.code.startsWith('ERR_SSL_');
}

/** Waits; returns false if `signal` aborted first. */
function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const end = (passed: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
      resolve(passed);
    };
    const aborted = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener('abort', aborted);
    return undefined;
  });
}
