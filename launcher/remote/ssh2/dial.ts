/**
 * A socket to a host that is reached directly. The look-up of its name has the system's own limits. Of several addresses each has ConnectTimeout
 * for itself: the next is tried when one fails or has not answered for a moment, and the first that connects counts (as RFC 8305 has it).
 */
import { ADDRCONFIG, lookup } from 'node:dns';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { tcpEnd, tcpUserTimeout } from '../../local/host.ts';
import { ALIVE_COUNT, ALIVE_SECONDS } from '../shell/silence.ts';
import { timeoutProblem } from './errors.ts';
import type { HopSettings } from './settings.ts';

/** A lost packet is sent again after a second. */
const NEXT_ADDRESS_MS = 300;

type Resolve = (hostName: string, family: HopSettings['family']) => Promise<readonly string[]>;

/** Until it is connected, `signal` ends it. @throws ConnectionError, or the system's error */
export async function dial(
  settings: HopSettings,
  signal: AbortSignal,
  resolve: Resolve = addressesOf,
): Promise<Socket> {
  const addresses = await resolve(settings.hostName, settings.family);
  signal.throwIfAborted();
  return new Race(settings, addresses, signal).winner;
}

function addressesOf(hostName: string, family: HopSettings['family']): Promise<readonly string[]> {
  const hints = family === 0 ? ADDRCONFIG : 0;
  return new Promise((resolve, reject) => {
    lookup(hostName, { family, hints, all: true }, (error, found) => {
      if (error === null) resolve(found.map(({ address }) => address));
      else reject(error);
    });
  });
}

/** Attempts to connect, of which one wins. */
class Race {
  readonly #settings: HopSettings;
  readonly #left: string[];
  readonly #sockets = new Set<Socket>();
  readonly #result = Promise.withResolvers<Socket>();
  #first: unknown = null;
  #next: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(settings: HopSettings, addresses: readonly string[], signal: AbortSignal) {
    this.#settings = settings;
    this.#left = [...addresses];
    const abort = (): void => this.#end(() => this.#result.reject(signal.reason));
    signal.addEventListener('abort', abort, { once: true });
    this.winner.then(
      () => signal.removeEventListener('abort', abort),
      () => signal.removeEventListener('abort', abort),
    );
    this.#try();
  }

  get winner(): Promise<Socket> {
    return this.#result.promise;
  }

  #try(): void {
    clearTimeout(this.#next);
    const address = this.#left.shift();
    if (address === undefined) return;
    if (this.#left.length > 0) this.#next = setTimeout(() => this.#try(), NEXT_ADDRESS_MS);
    const { hostName, port, bindAddress, connectSeconds } = this.#settings;
    const socket = connect({
      host: address,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: ALIVE_SECONDS * 1000,
      ...(bindAddress === null ? {} : { localAddress: bindAddress }),
    });
    this.#sockets.add(socket);
    const late = setTimeout(() => {
      const detail = `connect to ${hostName} port ${port}: no answer within ${connectSeconds} s`;
      socket.destroy(timeoutProblem(detail));
    }, connectSeconds * 1000);
    const failed = (error: Error): void => {
      this.#first ??= error;
    };
    const closed = (): void => {
      clearTimeout(late);
      this.#sockets.delete(socket);
      if (this.#left.length > 0) this.#try();
      else if (this.#sockets.size === 0) this.#end(() => this.#result.reject(this.#first));
    };
    socket.once('error', failed).once('close', closed);
    socket.once('connect', () => {
      clearTimeout(late);
      this.#sockets.delete(socket);
      socket.off('error', failed).off('close', closed);
      gatherWrites(socket);
      this.#end(() => this.#result.resolve(socket));
    });
  }

  #end(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#left.length = 0;
    clearTimeout(this.#next);
    settle();
    for (const socket of this.#sockets) socket.destroy();
  }
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
