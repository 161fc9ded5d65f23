/**
 * Connections that have not shown yet what they are to show. Only so many wait at a time, and where one more comes than there is room for, the
 * longest waiting one goes of those addresses that have most: who floods the port from one address keeps nobody else out.
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
  /** By where they come from. */
  readonly #guests = new Map<string, Guest>();
  /** By network where they come from, the longest waiting first. */
  readonly #networks = new Map<string, Set<string>>();

  /** Who has waited for `patienceMs` goes. */
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

  /** Who comes from there (originOf) has shown it, or is gone. */
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

/** What a connection and TLS on it have in common. */
export function remoteEnd({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Whoever has one address of IPv6 mostly has 2^64. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  if (tail === undefined) return groups.slice(0, 4).join(':');
  const behind = tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => '0');
  return [...groups, ...zeros, ...behind].slice(0, 4).join(':');
}
