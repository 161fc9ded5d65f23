/** Calls the launcher that has sent an invitation. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { type Invitation, secretTls } from './secret.ts';
import { messageOf } from '../message-of.ts';

/** Of one address, before the next is tried beside it. */
const HEAD_START_MS = 250;

/** A connection on which both sides have shown the key. Rejects, with what was tried, after `limitMs`. */
export async function call(invitation: Invitation, identity: string, limitMs: number): Promise<TLSSocket> {
  const deadline = AbortSignal.timeout(limitMs);
  const found = new AbortController();
  const enough = AbortSignal.any([deadline, found.signal]);
  const { addresses, port } = invitation;
  const troubles: string[] = [];
  const attempts: Socket[] = [];
  const tried = addresses.map(async (host, index) => {
    await pause(index * HEAD_START_MS, enough);
    const socket = connectTcp({ host, port });
    attempts.push(socket);
    try {
      await once(socket, 'connect', { signal: enough });
    } catch (error) {
      troubles.push(`${host}: ${deadline.aborted ? 'no answer' : messageOf(error)}`);
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
    const how = error instanceof AggregateError ? troubles.join('; ') : messageOf(error);
    const message = `the launcher cannot be reached at port ${port}: ${how || 'no address was given'}`;
    throw new Error(message, { cause: error });
  }
}

async function shake(
  socket: Socket,
  { secret }: Invitation,
  identity: string,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const tls = connectTls({
    ...secretTls,
    socket,
    pskCallback: () => ({ psk: Buffer.from(secret, 'base64'), identity }),
    checkServerIdentity: () => undefined, // it has no certificate: who has the key is the launcher
  });
  await once(tls, 'secureConnect', { signal });
  tls.setNoDelay(true);
  return tls;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    timer.unref();
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new Error('no answer'));
    });
  });
}
