/** Where those who were invited call: a TCP port that answers nobody without the job's key. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { secretTls } from './secret.ts';
import { StreamLink } from './stream-link.ts';

/** Whoever has not shown the key by then goes. */
const HANDSHAKE_MS = 10_000;
/** Who has not shown the key, at a time: the longest waiting one goes first, so that nobody can keep out those who were invited. */
const STRANGERS = 64;
const KEEPALIVE_MS = 30_000;

export interface LinkServerOptions {
  readonly secret: Uint8Array;
  /** Who may call, once each. */
  readonly identities: ReadonlySet<string>;
  readonly onLink: (identity: string, link: StreamLink) => void;
}

export class LinkServer {
  readonly #server: Server;
  readonly #callers = new WeakMap<TLSSocket, string>();
  /** By where they call from, the longest waiting first. */
  readonly #strangers = new Map<string, Socket>();
  readonly #expected: Set<string>;

  private constructor({ secret, identities, onLink }: LinkServerOptions) {
    this.#expected = new Set(identities);
    const key = Buffer.from(secret);
    this.#server = createServer({
      ...secretTls,
      handshakeTimeout: HANDSHAKE_MS,
      pskCallback: (socket, identity) => {
        if (!this.#expected.has(identity)) return null;
        this.#callers.set(socket, identity);
        return key;
      },
    });
    this.#server.on('connection', (socket) => this.#wait(socket));
    this.#server.on('secureConnection', (socket) => {
      this.#strangers.delete(originOf(socket));
      const identity = this.#callers.get(socket);
      if (identity === undefined || !this.#expected.delete(identity)) return socket.destroy();
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEPALIVE_MS);
      onLink(identity, new StreamLink(socket, socket));
      return undefined;
    });
    this.#server.on('tlsClientError', () => undefined); // strangers, and scanners of ports
  }

  #wait(socket: Socket): void {
    const origin = originOf(socket);
    this.#strangers.set(origin, socket);
    socket.once('close', () => {
      if (this.#strangers.get(origin) === socket) this.#strangers.delete(origin);
    });
    const [longest] = this.#strangers;
    if (longest === undefined || this.#strangers.size <= STRANGERS) return;
    this.#strangers.delete(longest[0]);
    longest[1].destroy();
  }

  /** Rejects where no port can be had. */
  static async listen(options: LinkServerOptions): Promise<LinkServer> {
    const server = new LinkServer(options);
    server.#server.listen({ port: 0, host: '::', ipv6Only: false });
    try {
      await once(server.#server, 'listening');
    } catch {
      server.#server.listen({ port: 0, host: '0.0.0.0' }); // a kernel without IPv6
      await once(server.#server, 'listening');
    }
    return server;
  }

  get port(): number {
    const address = this.#server.address();
    return address === null || typeof address === 'string' ? 0 : address.port;
  }

  /** No more calls; links stay. */
  close(): void {
    this.#server.close();
  }
}

function originOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
