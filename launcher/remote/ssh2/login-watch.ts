/**
 * Checks during a long login whether the host is alive: its directory or name service may be slow. It opens a second connection. An sshd greets
 * or rejects every client; a host with frozen processes does neither, although its kernel acknowledges.
 */
import type { Duplex } from 'node:stream';
import { ALIVE_SECONDS, SilenceWatch } from '../shell/silence.ts';
import { hangUp } from './dial.ts';

export class LoginWatch {
  readonly #dial: () => Promise<Duplex>;
  readonly #watch: SilenceWatch;
  readonly #timer: NodeJS.Timeout;
  #isAsking = false;
  #asked: Duplex | null = null;
  #isOver = false;

  /** `dial` makes another connection to the host; `silent` is called once, if for long nothing came by any. */
  constructor(dial: () => Promise<Duplex>, silent: () => void) {
    this.#dial = dial;
    this.#watch = new SilenceWatch(silent);
    this.#timer = setInterval(() => this.#ask(), ALIVE_SECONDS * 1000);
  }

  received(): void {
    this.#watch.received();
  }

  stop(): void {
    this.#isOver = true;
    this.#watch.stop();
    clearInterval(this.#timer);
    if (this.#asked !== null) hangUp(this.#asked);
  }

  #ask(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#dial().then(
      (socket) => this.#listen(socket),
      () => this.#answered(), // whatever it is, silence is something else
    );
  }

  #listen(socket: Duplex): void {
    if (this.#isOver) return hangUp(socket);
    this.#asked = socket;
    socket.once('data', () => hangUp(socket));
    socket.once('end', () => hangUp(socket));
    socket.on('error', () => hangUp(socket));
    socket.once('close', () => this.#answered());
  }

  #answered(): void {
    this.#isAsking = false;
    this.#asked = null;
    this.#watch.received();
  }
}
