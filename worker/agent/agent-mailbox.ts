/** Messages between ranks under a key: within a job of one host they lie here, else at the launcher. */
import { decodeFetch, decodePost, encodeDelivery } from '../../control/messages/bootstrap-codec.ts';
import type { MailboxMessage } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { describeKey } from '../../control/messages/key.ts';
import type { Key } from '../../control/messages/key.ts';
import { encodeRouted } from '../../control/messages/rendezvous-codec.ts';
import type { Routed } from '../../control/messages/rendezvous-codec.ts';
import { ROUTED_WANTED } from '../../control/messages/rendezvous.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import { Mailbox } from '../../control/rendezvous/mailbox.ts';
import type { Engine, EngineChannel } from './engine.ts';

const NOTHING = new Uint8Array(0);

interface AgentMailboxOptions {
  readonly channel: EngineChannel;
  /** All messages go by the launcher: it alone sees both ends, whichever comes first. */
  readonly acrossHosts: boolean;
  sendUp(frame: Frame): void;
}

interface Fetcher {
  readonly engine: Engine;
  readonly request: number;
}

export class AgentMailbox {
  readonly #options: AgentMailboxOptions;
  readonly #mailbox = new Mailbox<Fetcher>();

  constructor(options: AgentMailboxOptions) {
    this.#options = options;
  }

  post(engine: Engine, request: number, payload: Uint8Array): void {
    const { bytes, ...message } = decodePost(payload);
    if (this.#options.acrossHosts) this.#sendUp(message, bytes, 0);
    else if (!this.#deliver(message, bytes)) return this.#refuse(engine, request, message);
    return this.#options.channel.send(engine.connection, FrameKind.delivery, request, encodeDelivery(NOTHING));
  }

  fetch(engine: Engine, request: number, payload: Uint8Array): void {
    const message = decodeFetch(payload);
    const bytes = this.#mailbox.fetch(message, { engine, request });
    if (bytes === 'full') return this.#refuse(engine, request, message);
    if (bytes !== 'waiting')
      return this.#options.channel.send(engine.connection, FrameKind.delivery, request, encodeDelivery(bytes));
    if (this.#options.acrossHosts) this.#sendUp(message, NOTHING, ROUTED_WANTED);
    return undefined;
  }

  /** A message that somebody here had asked for. */
  arrived({ bytes, ...message }: Routed): void {
    this.#deliver(message, bytes);
  }

  /** Ends the id and answers the remaining waiters with `failure`. */
  end(key: Key, failure: RendezvousFailure): void {
    for (const { engine, request } of this.#mailbox.end(key.id, key.epoch)) {
      if (!engine.gone) this.#options.channel.refuse(engine.connection, request, failure.result, failure.sentence);
    }
  }

  drop(engine: Engine): void {
    this.#mailbox.dropWaiters((waiter) => waiter.engine === engine);
  }

  #deliver(message: MailboxMessage, bytes: Uint8Array): boolean {
    const outcome = this.#mailbox.post(message, bytes);
    if (outcome === 'full') return false;
    if (outcome === 'stored') return true;
    const { engine, request } = outcome.waiter;
    this.#options.channel.send(engine.connection, FrameKind.delivery, request, encodeDelivery(bytes));
    return true;
  }

  #refuse(engine: Engine, request: number, { key }: MailboxMessage): void {
    const sentence = `too many messages lie unfetched under ${describeKey(key)}`;
    this.#options.channel.refuse(engine.connection, request, NcclResult.invalidUsage, sentence);
  }

  #sendUp(message: MailboxMessage, bytes: Uint8Array, flags: number): void {
    const payload = encodeRouted({ ...message, bytes });
    this.#options.sendUp(makeFrame(FrameKind.routed, { flags, payload }));
  }
}
