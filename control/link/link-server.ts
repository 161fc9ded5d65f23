/** Where those who were invited call: a TCP port that answers nobody without the job's key. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { JOB_TOKEN_BYTES, SECRET_BYTES, secretTls, tokenOf } from './secret.ts';
import { StreamLink } from './stream-link.ts';
import { remoteEnd, WaitingRoom } from './waiting-room.ts';

/** Whoever has not shown the token by then goes, and whoever has not shown the key in as much time more. */
const HANDSHAKE_MS = 10_000;
/** Who has not shown the token, at a time. */
const STRANGERS = 64;
/** Who has, and not yet the key: some for each host, for the token may have been overheard. */
const HANDSHAKES_PER_HOST = 4;
const MIN_HANDSHAKES = 64;
/** Connections that the system makes ahead of us, so that a flood does not cost those who were invited a timeout. */
const BACKLOG = 4096;
const KEEPALIVE_MS = 30_000;

interface LinkServerOptions {
  readonly secret: Uint8Array;
  /** Who may call, once each. */
  readonly identities: ReadonlySet<string>;
  readonly onLink: (identity: string, link: StreamLink) => void;
}

export class LinkServer {
  readonly #tcp: TcpServer;
  /** Does not listen: it is given the connections that have shown the token. */
  readonly #tls: Server;
  readonly #token: Buffer;
  readonly #callers = new WeakMap<TLSSocket, string>();
  readonly #strangers = new WaitingRoom(STRANGERS, HANDSHAKE_MS);
  readonly #invited: WaitingRoom;
  readonly #expected: Set<string>;

  private constructor({ secret, identities, onLink }: LinkServerOptions) {
    this.#expected = new Set(identities);
    this.#token = tokenOf(secret);
    this.#invited = new WaitingRoom(Math.max(MIN_HANDSHAKES, HANDSHAKES_PER_HOST * identities.size), HANDSHAKE_MS);
    const key = Buffer.from(secret);
    this.#tls = createServer({
      ...secretTls,
      handshakeTimeout: HANDSHAKE_MS,
      pskCallback: (socket, identity) => {
        // To whom it is told that a name is wrong, it would be told which names are right.
        if (!this.#expected.has(identity)) return randomBytes(SECRET_BYTES);
        this.#callers.set(socket, identity);
        return key;
      },
    });
    this.#tls.on('secureConnection', (socket) => {
      this.#invited.leave(remoteEnd(socket));
      const identity = this.#callers.get(socket);
      if (identity === undefined || !this.#expected.delete(identity)) return socket.destroy();
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEPALIVE_MS);
      onLink(identity, new StreamLink(socket, socket));
      return undefined;
    });
    this.#tls.on('tlsClientError', () => undefined); // who has the token and not the key
    this.#tcp = createTcpServer((socket) => this.#wait(socket));
  }

  /** No part of TLS is touched for who does not know the token. */
  #wait(socket: Socket): void {
    this.#strangers.enter(socket);
    socket.on('error', () => undefined);
    const look = (): void => {
      const shown: unknown = socket.read(JOB_TOKEN_BYTES);
      if (!(shown instanceof Buffer)) return;
      socket.off('readable', look);
      this.#strangers.leave(remoteEnd(socket));
      if (shown.length !== JOB_TOKEN_BYTES || !timingSafeEqual(shown, this.#token)) socket.destroy();
      else this.#shake(socket);
    };
    socket.on('readable', look);
  }

  #shake(socket: Socket): void {
    this.#invited.enter(socket);
    this.#tls.emit('connection', socket);
  }

  /** Rejects where no port can be had. */
  static async listen(options: LinkServerOptions): Promise<LinkServer> {
    const server = new LinkServer(options);
    server.#tcp.listen({ port: 0, host: '::', ipv6Only: false, backlog: BACKLOG });
    try {
      await once(server.#tcp, 'listening');
    } catch {
      server.#tcp.listen({ port: 0, host: '0.0.0.0', backlog: BACKLOG }); // a kernel without IPv6
      await once(server.#tcp, 'listening');
    }
    return server;
  }

  get port(): number {
    const address = this.#tcp.address();
    return address === null || typeof address === 'string' ? 0 : address.port;
  }

  /** No more calls; links stay. */
  close(): void {
    this.#tcp.close();
  }
}
