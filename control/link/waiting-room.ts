/**
 * Connections before authentication. Their number is bounded: when one more arrives, the oldest connection of the address with the most
 * connections is closed, so that a flood from one address does not exclude others.
 */
import type { Socket } from 'node:net';

interface Guest {
  readonly socket: Socket;
  readonly network: string;
  readonly timeout: NodeJS.Timeout;
}

export class WaitingRoom {
  readonly #capacity: number;
  readonly #timeoutMs: number;
  /** Connections by remote endpoint. */
  readonly #guests = new Map<string, Guest>();
  /** Remote endpoints by network, the oldest first. */
  readonly #networks = new Map<string, Set<string>>();

  /** Closes a connection after `timeoutMs`. */
  constructor(capacity: number, timeoutMs: number) {
    this.#capacity = capacity;
    this.#timeoutMs = timeoutMs;
  }

  enter(socket: Socket): void {
    const origin = remoteEnd(socket);
    const network = networkOf(socket.remoteAddress ?? '');
    const timeout = setTimeout(() => socket.destroy(), this.#timeoutMs);
    timeout.unref();
    this.#guests.set(origin, { socket, network, timeout });
    const neighbours = this.#networks.get(network) ?? new Set();
    this.#networks.set(network, neighbours.add(origin));
    socket.once('close', () => {
      if (this.#guests.get(origin)?.socket === socket) this.leave(origin);
    });
    if (this.#guests.size > this.#capacity) this.#sendAway();
  }

  /** Forgets the connection of a remote endpoint (remoteEnd), which has authenticated or is gone. */
  leave(origin: string): void {
    const guest = this.#guests.get(origin);
    if (guest === undefined) return;
    clearTimeout(guest.timeout);
    this.#guests.delete(origin);
    const neighbours = this.#networks.get(guest.network);
    neighbours?.delete(origin);
    if (neighbours?.size === 0) this.#networks.delete(guest.network);
  }

  #sendAway(): void {
    let largest: ReadonlySet<string> = new Set();
    for (const origins of this.#networks.values()) if (origins.size > largest.size) largest = origins;
    const [longest = ''] = largest;
    const guest = this.#guests.get(longest);
    this.leave(longest);
    guest?.socket.destroy();
  }
}

/** Key that a TCP connection and the TLS socket on it share. */
export function remoteEnd({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

/** A /64 network for IPv6, because one host usually owns all of its 2^64 addresses. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  if (tail === undefined) return groups.slice(0, 4).join(':');
  const behind = tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => '0');
  return [...groups, ...zeros, ...behind].slice(0, 4).join(':');
}
