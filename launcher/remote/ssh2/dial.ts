/** A socket to a host that needs no other on the way. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { timeoutTrouble } from './errors.ts';
import type { HopSettings } from './settings.ts';

/** `onSocket` gets it before it is connected; the promise, after. @throws TroubleError, or the system's error */
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
      // Node gives each of several addresses 250 ms, else: too little for a lost packet.
      autoSelectFamilyAttemptTimeout: limitMs,
      ...(bindAddress === null ? {} : { localAddress: bindAddress }),
    });
    onSocket(socket);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(timeoutTrouble(`connect to ${host} port ${port}: no answer within ${connectSeconds} s`));
    }, limitMs);
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error('the socket was closed'));
    });
    socket.once('connect', () => clearTimeout(timer));
  });
}
