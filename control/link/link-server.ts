/** TCP server for invited agents: it serves no client without the job's key. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { listenWithin, type PortRange } from '../port-range.ts';
import { JOB_TOKEN_BYTES, SECRET_BYTES, secretTls, tokenOf } from './secret.ts';
import { StreamLink } from './stream-link.ts';
import { remoteEnd, WaitingRoom } from './waiting-room.ts';

/** Timeout for the token, and once more for the key. */
const HANDSHAKE_MS = 10_000;
/** Maximum of connections that have not shown the token. */
const STRANGERS = 64;
/** Maximum per host of connections that have shown the token and not yet the key; an eavesdropper may know the token. */
const HANDSHAKES_PER_HOST = 4;
const MIN_HANDSHAKES = 64;
/** Connections that the kernel accepts ahead of us, so that a flood causes no timeout for invited agents. */
const BACKLOG = 4096;
const KEEPALIVE_MS = 30_000;

interface LinkServerOptions {
  readonly secret: Uint8Array;
  /** Identities that may connect, once each. */
  readonly identities: ReadonlySet<string>;
  readonly onLink: (identity: string, link: StreamLink) => void;
  /** Null: the system chooses the port. */
  readonly portRange: PortRange | null;
}

export class LinkServer {
  readonly #tcp: TcpServer;
  /** Does not listen; receives the connections that have shown the token. */
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
        // A distinct answer to an unknown identity would reveal which identities exist.
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
    this.#tls.on('tlsClientError', () => undefined); // a client with the token but without the key
    this.#tcp = createTcpServer((socket) => this.#wait(socket));
  }

  /** Waits for the token: no code of TLS runs for a client without it. */
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

  /** Rejects if it cannot listen on a port of the range. */
  static async listen(options: LinkServerOptions): Promise<LinkServer> {
    const server = new LinkServer(options);
    const { portRange } = options;
    try {
      await listenWithin(server.#tcp, { host: '::', ipv6Only: false, backlog: BACKLOG }, portRange);
    } catch {
      await listenWithin(server.#tcp, { host: '0.0.0.0', backlog: BACKLOG }, portRange); // a kernel without IPv6
    }
    return server;
  }

  get port(): number {
    const address = this.#tcp.address();
    return address === null || typeof address === 'string' ? 0 : address.port;
  }

  /** Accepts no more connections; links stay open. */
  close(): void {
    this.#tcp.close();
  }
}
