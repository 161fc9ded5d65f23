/**
 * One ssh connection, to the host itself or to a jump host.
 *
 *   connecting ── TCP ──► handshake ── host key ──► authentication ── a key ──► ready ──► closed
 *        └────────────────────┴─────────── fails: a ConnectionError ───┘
 */
import type { Duplex } from 'node:stream';
import type { AuthHandlerMiddleware, Client, ClientChannel } from 'ssh2';
import type { HostRecords } from '../known-hosts/judge.ts';
import { ALIVE_COUNT, ALIVE_SECONDS, SilenceWatch } from '../shell/silence.ts';
import { makeConnectionError, type ConnectionProblem, ConnectionError } from '../shell/connection-error.ts';
import { offeredAlgorithms } from './algorithms.ts';
import type { UserOrders } from './algorithms.ts';
import { bearSilence, dial, hangUp } from './dial.ts';
import { authenticationProblem, connectProblem, droppedProblem, silentProblem } from './errors.ts';
import type { Progress } from './errors.ts';
import { refuseKey } from './host-key.ts';
import type { Offers } from './identities.ts';
import { asJumpProblem } from './jump-problem.ts';
import { loadParts } from './late-library.ts';
import { LoginWatch } from './login-watch.ts';
import { sshWords, type HopSettings } from './settings.ts';
import type { Passage } from './shared-hops.ts';

/** A busy machine may take its time over a handshake; the agent's own deadline is longer. */
const HANDSHAKE_MS = 45_000;

/** Of SSH_MSG_CHANNEL_OPEN_FAILURE (RFC 4254, 5.1). */
const ADMINISTRATIVELY_PROHIBITED = 1;

export interface HopKnowledge {
  readonly records: HostRecords;
  readonly offers: Offers;
  readonly orders: UserOrders;
}

export class Hop {
  readonly settings: HopSettings;
  readonly #closed = Promise.withResolvers<void>();
  readonly #ready = Promise.withResolvers<void>();
  /** Ends what is being connected. */
  readonly #ended = new AbortController();
  #socket: Duplex | null = null;
  /** Null until the host is connected. */
  #client: Client | null = null;
  readonly #onProgress: (progress: Progress) => void;
  #progress: Progress = 'connecting';
  #failure: ConnectionError | null = null;
  #isClosed = false;
  /** The way through another host's connection; null: none. */
  #via: Passage | null = null;

  /** `onProgress`: it got so far. */
  constructor(settings: HopSettings, onProgress: (progress: Progress) => void = () => {}) {
    this.settings = settings;
    this.#onProgress = onProgress;
    this.#ready.promise.catch(() => {}); // whoever waits for it gets the error
  }

  /** Not null: the host fell silent, and was given up. */
  get silence(): ConnectionProblem | null {
    return this.#failure?.problem.cause === 'timeout' ? this.#failure.problem : null;
  }

  /** Resolves when the connection is no more; never rejects. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Resolves when we are in. `via` leads through another host's connection. What is known of the host is being read while the
   * connection is made. @throws ConnectionError
   */
  open(knowledge: Promise<HopKnowledge>, via: Passage | null): Promise<void> {
    this.#via = via;
    this.#begin(knowledge, via).catch((error: unknown) => this.#fail(asProblem(error, this.settings)));
    return this.#ready.promise;
  }

  #reach(progress: Progress): void {
    this.#progress = progress;
    this.#onProgress(progress);
  }

  async #begin(knowledge: Promise<HopKnowledge>, via: Passage | null): Promise<void> {
    await via?.opened.catch((error: unknown) => {
      throw asJumpProblem(error, via.hop.settings.name);
    });
    const dialHost = (): Promise<Duplex> =>
      via === null ? dial(this.settings, this.#ended.signal) : via.hop.forward(this.settings);
    const socket = await dialHost();
    this.#socket = socket;
    socket.on('error', (error) => this.#fail(connectProblem(this.settings, error, this.#progress)));
    this.#reach('handshake');
    const [known, { SshClient }] = await Promise.all([knowledge, loadParts()]);
    if (this.#failure !== null) return hangUp(socket);
    const client = new SshClient();
    this.#watchSilence(client, socket, dialHost);
    this.#speak(client, socket, known);
  }

  /**
   * Calls `begin` as soon as the host has accepted, because data and even the end may arrive in the same packet. Resolves to its result.
   * @throws ConnectionError
   */
  exec<Running>(command: string, begin: (channel: ClientChannel) => Running): Promise<Running> {
    return new Promise((resolve, reject) => {
      const refused = (error: Error) =>
        makeConnectionError(
          'shell',
          `${this.settings.hostName} lets us in, but starts nothing: ${error.message}`,
          `try: ssh ${sshWords(this.settings)} true`,
        );
      if (this.#isClosed || this.#client === null) return reject(refused(new Error('the connection is closed')));
      this.#client.exec(command, { env: { ...this.settings.environment } }, (error, channel) => {
        if (error === undefined) resolve(begin(channel));
        else reject(refused(error));
      });
    });
  }

  /** A stream to a host behind this one. @throws ConnectionError */
  forward({ hostName, port }: HopSettings): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      const through = this.settings.name;
      if (this.#isClosed || this.#client === null)
        return reject(makeConnectionError('other', `the connection to ${through}, on the way there, is closed`, null));
      this.#client.forwardOut('127.0.0.1', 0, hostName, port, (error, channel) => {
        if (error === undefined) resolve(channel);
        else reject(forwardProblem(through, hostName, port, error));
      });
    });
  }

  /** Says goodbye. */
  end(): void {
    this.#client?.end();
    this.destroy();
  }

  /** Ends the connection at once, in whatever state it is. */
  destroy(): void {
    const ended = makeConnectionError('other', 'the connection was ended', null);
    this.#fail(ended);
  }

  #speak(client: Client, socket: Duplex, { records, offers, orders }: HopKnowledge): void {
    const { settings } = this;
    this.#client = client;
    client.once('handshake', () => this.#reach('authentication'));
    client.on('ready', () => {
      this.#reach('ready');
      this.#ready.resolve();
    });
    client.on('error', (error) => {
      // An agent that refuses to sign; the next key is tried.
      if (error.level !== 'agent') this.#fail(this.#clientProblem(error));
    });
    client.on('close', () => {
      this.#fail(droppedProblem(settings, this.#progress, null));
      this.#close();
    });
    client.connect({
      sock: socket,
      username: settings.user,
      readyTimeout: HANDSHAKE_MS,
      keepaliveInterval: ALIVE_SECONDS * 1000,
      keepaliveCountMax: ALIVE_COUNT,
      algorithms: offeredAlgorithms(settings, orders, records.types),
      hostVerifier: (key: Buffer) => this.#verify(records, key),
      authHandler: this.#authenticate(offers),
    });
  }

  /** A login may take the host long, while its system still acknowledges, and its sshd answers others; after it, the package asks now and then whether the host is there. */
  #watchSilence(client: Client, socket: Duplex, dialAgain: () => Promise<Duplex>): void {
    const silent = (): void => this.#fail(silentProblem(this.settings));
    let watch: SilenceWatch | LoginWatch = new SilenceWatch(silent);
    socket.on('data', () => watch.received());
    const stop = (): void => watch.stop();
    // Later ones change keys.
    client.once('handshake', () => {
      stop();
      watch = new LoginWatch(dialAgain, silent);
      bearSilence(socket, true);
    });
    client.on('ready', () => {
      stop();
      bearSilence(socket, false);
    });
    this.#ready.promise.catch(stop);
  }

  #verify(records: HostRecords, key: Buffer): boolean {
    const refusal = refuseKey(this.settings, records, key);
    if (refusal !== null) this.#fail(refusal);
    return refusal === null;
  }

  /** Offers one key after the other. */
  #authenticate(offers: Offers): AuthHandlerMiddleware {
    const left = [...offers.offers];
    let methods: readonly string[] = ['publickey'];
    return (allowed: readonly string[] | null, partial, next) => {
      if (allowed !== null) methods = allowed;
      const offer = methods.includes('publickey') && !partial ? left.shift() : undefined;
      if (offer === undefined) this.#fail(authenticationProblem(this.settings, methods, offers, partial));
      else next(offer.method(this.settings.user));
    };
  }

  #clientProblem(error: NodeJS.ErrnoException & { readonly level?: string }): ConnectionError {
    const { settings } = this;
    if (error.level === 'client-timeout') return silentProblem(settings);
    if (error.level === 'handshake') {
      const cause = /host key/i.test(error.message) && !/no matching/i.test(error.message) ? 'host-key' : 'other';
      const detail = `${settings.hostName}: ${error.message}`;
      return new ConnectionError({
        cause,
        detail,
        remedy: 'try --rsh openssh',
        transient: false,
        isForAnother: true,
      });
    }
    return connectProblem(settings, error, this.#progress);
  }

  /** The first failure counts; after it, there is no connection. */
  #fail(failure: ConnectionError): void {
    if (this.#failure !== null) return;
    this.#failure = failure;
    this.#ended.abort(failure);
    this.#ready.reject(failure);
    // What goes through another connection ends with it; nothing of it is ours to wait for.
    if (this.#socket === null || this.#via !== null || this.#socket.destroyed) this.#close();
    this.#socket?.once('close', () => this.#close());
    if (this.#socket !== null) hangUp(this.#socket);
  }

  #close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
  }
}

function asProblem(error: unknown, settings: HopSettings): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  return connectProblem(settings, cause, 'connecting');
}

/** Interprets sshd's message about an unreachable next host, which is one of a few. */
function forwardProblem(through: string, host: string, port: number, error: Error): ConnectionError {
  const detail = `${through}, on the way there, cannot connect to ${host} port ${port}: ${error.message}`;
  const isProhibited = 'reason' in error && error.reason === ADMINISTRATIVELY_PROHIBITED;
  const remedy = isProhibited
    ? `${through} forwards nothing there: its sshd needs AllowTcpForwarding yes, and PermitOpen for ${host}`
    : `try: ssh ${through} ssh-keyscan -p ${port} ${host}`;
  const causes = [
    [/refused/i, 'refused'],
    [/no route|unreachable/i, 'no-route'],
    [/timed out/i, 'timeout'],
    [/resol|name or service|unknown host|hostname/i, 'unknown-host'],
  ] as const;
  const cause = causes.find(([pattern]) => pattern.test(error.message))?.[1] ?? 'other';
  return makeConnectionError(cause, detail, remedy);
}
