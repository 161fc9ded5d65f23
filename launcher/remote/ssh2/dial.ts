/** A socket to a host that is reached directly. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { tcpEnd, tcpUserTimeout } from '../../local/host.ts';
import { ALIVE_COUNT, ALIVE_SECONDS } from '../shell/silence.ts';
import { timeoutProblem } from './errors.ts';
import type { HopSettings } from './settings.ts';

/** `onSocket` gets it before it is connected; the promise, after. @throws ConnectionError, or the system's error */
export function dial(settings: HopSettings, onSocket: (socket: Socket) => void): Promise<Socket> {
  const { hostName: host, port, family, bindAddress, connectSeconds } = settings;
  const limitMs = connectSeconds * 1000;
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      family,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: ALIVE_SECONDS * 1000,
      // Node gives each of several addresses 250 ms, else: too little for a lost packet.
      autoSelectFamilyAttemptTimeout: limitMs,
      ...(bindAddress === null ? {} : { localAddress: bindAddress }),
    });
    onSocket(socket);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(timeoutProblem(`connect to ${host} port ${port}: no answer within ${connectSeconds} s`));
    }, limitMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      gatherWrites(socket);
      resolve(socket);
    });
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error('the socket was closed'));
    });
  });
}

/**
 * While `borne`, a host may be slow to send data, but its kernel must acknowledge our packets, at least probes. This distinguishes a slow
 * login from a lost host; without acknowledgements the connection fails with ETIMEDOUT.
 */
export function bearSilence(socket: Duplex, borne: boolean): void {
  const descriptor = descriptorOf(socket);
  if (descriptor !== null) tcpUserTimeout(descriptor, borne ? ALIVE_SECONDS * ALIVE_COUNT * 1000 : 0);
}

/** Closes it, so that the other side learns of that also on a link that loses packets. */
export function hangUp(socket: Duplex): void {
  const descriptor = descriptorOf(socket);
  if (descriptor !== null) tcpEnd(descriptor);
  socket.destroy();
}

/** Checks the handle, which is internal to Node; a connection through another host has none. */
function descriptorOf(socket: Duplex): number | null {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return null;
  return typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : null;
}

/**
 * What is written in one go leaves in one packet: the package ssh2 writes three times for each message, and Nagle's pauses are off. Node puts
 * its own method back while it connects, so this is for a socket that is connected.
 */
function gatherWrites(socket: Socket): void {
  const write = socket.write.bind(socket);
  socket.write = (bytes: Uint8Array | string, how?: BufferEncoding | Written, callback?: Written): boolean => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return typeof how === 'function' ? write(bytes, how) : write(bytes, how, callback);
  };
}

type Written = (error?: Error | null) => void;
