/** An engine's side of the bootstrap socket, in TypeScript: asks questions and keeps what comes unasked. File descriptors are not taken. */
import { ALL_GONE } from '../../control/messages/split.ts';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { BOOTSTRAP_PROTOCOL } from '../../control/messages/bootstrap.ts';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { encodeFrame, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { readResult } from '../../control/messages/result.ts';
import { peerInfo } from './rendezvous.ts';

export interface Refusal {
  readonly result: number;
  readonly sentence: string;
}

export interface AbortNotice extends Refusal {
  readonly rank: number;
}

export class EngineClient {
  readonly #socket: Socket;
  readonly #answers = new Map<number, (frame: Frame) => void>();
  readonly #aborts: AbortNotice[] = [];
  /** Ranks that are gone, in the order in which that was told: who, and what a wait for it ends with. */
  readonly gone: AbortNotice[] = [];
  #abortWaiter: ((notice: AbortNotice) => void) | null = null;
  #request = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const decoder = new FrameDecoder((frame) => this.#receive(frame));
    socket.on('data', (chunk) => decoder.push(chunk));
    socket.on('error', () => undefined);
  }

  static async connect(path: string): Promise<EngineClient> {
    const socket = connect(path);
    await once(socket, 'connect');
    return new EngineClient(socket);
  }

  ask(kind: FrameKind, payload: Uint8Array): Promise<Frame> {
    const request = ++this.#request;
    const answer = new Promise<Frame>((resolve) => this.#answers.set(request, resolve));
    this.#socket.write(encodeFrame(makeFrame(kind, { request, payload })));
    return answer;
  }

  hello(rank: number, jobId = 'test', protocol = BOOTSTRAP_PROTOCOL): Promise<Frame> {
    const writer = new ByteWriter().u32(protocol).u32(process.pid).i32(rank).string(jobId).string('0.0.0');
    return this.ask(FrameKind.engineHello, writer.finish());
  }

  join(key: Key, size: number, rank: number, info: Uint8Array = peerInfo()): Promise<Frame> {
    return this.ask(FrameKind.join, this.#key(key).u32(size).u32(rank).bytes(info).finish());
  }

  gather(key: Key, size: number, rank: number, bytes: string): Promise<Frame> {
    const writer = this.#key(key).u32(key.round).u32(size).u32(rank).block(Buffer.from(bytes));
    return this.ask(FrameKind.gather, writer.finish());
  }

  split(
    key: Key,
    size: number,
    rank: number,
    colour: number,
    order: number,
    leftOut: readonly number[] | 'gone' = [],
  ): Promise<Frame> {
    const writer = this.#key(key).u32(key.round).u32(size).u32(rank).i32(colour).i32(order).bytes(peerInfo());
    writer.u32(leftOut === 'gone' ? ALL_GONE : leftOut.length);
    for (const one of leftOut === 'gone' ? [] : leftOut) writer.u32(one);
    return this.ask(FrameKind.split, writer.finish());
  }

  post(key: Key, from: number, to: number, tag: number, bytes: string): Promise<Frame> {
    const writer = this.#key(key).u32(from).u32(to).u32(tag).block(Buffer.from(bytes));
    return this.ask(FrameKind.post, writer.finish());
  }

  fetch(key: Key, from: number, to: number, tag: number): Promise<Frame> {
    return this.ask(FrameKind.fetch, this.#key(key).u32(from).u32(to).u32(tag).finish());
  }

  leave(key: Key, rank: number, how: number, reason = ''): void {
    const payload = this.#key(key).u32(rank).u32(how).string(reason).u32(key.round).finish();
    this.#socket.write(encodeFrame(makeFrame(FrameKind.leave, { payload })));
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The next `aborted` frame. */
  nextAbort(): Promise<AbortNotice> {
    const [first] = this.#aborts.splice(0, 1);
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve) => {
      this.#abortWaiter = resolve;
    });
  }

  get aborts(): readonly AbortNotice[] {
    return this.#aborts;
  }

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, 'close');
  }

  close(): void {
    this.#socket.destroy();
  }

  #key(key: Key): ByteWriter {
    return new ByteWriter().bytes(Buffer.from(key.id, 'latin1')).u32(key.epoch);
  }

  #receive(frame: Frame): void {
    if (frame.kind === FrameKind.peerGone) {
      const gone = new ByteReader(frame.payload, 'rank that is gone');
      gone.bytes(128, 'id');
      gone.u32('epoch');
      gone.u32('rank that is told');
      this.gone.push({ rank: gone.u32('rank'), result: readResult(gone), sentence: gone.string('sentence') });
      return;
    }
    if (frame.kind !== FrameKind.aborted) {
      this.#answers.get(frame.request)?.(frame);
      this.#answers.delete(frame.request);
      return;
    }
    const reader = new ByteReader(frame.payload, 'aborted');
    reader.bytes(128, 'id');
    reader.u32('epoch');
    const notice = { rank: reader.u32('rank'), result: readResult(reader), sentence: reader.string('sentence') };
    if (this.#abortWaiter === null) this.#aborts.push(notice);
    else this.#abortWaiter(notice);
    this.#abortWaiter = null;
  }
}

/** What `refused` says; throws if the answer is something else. */
export function refusal(frame: Frame): Refusal {
  if (frame.kind !== FrameKind.refused) throw new Error(`answered with kind ${frame.kind} instead of a refusal`);
  const reader = new ByteReader(frame.payload, 'refused');
  return { result: readResult(reader), sentence: reader.string('sentence') };
}

/** The contributions in a `table`, as text. */
export function table(frame: Frame): string[] {
  if (frame.kind !== FrameKind.table) throw new Error(`answered with kind ${frame.kind} instead of a table`);
  const reader = new ByteReader(frame.payload, 'table');
  return Array.from({ length: reader.u32('size') }, () => Buffer.from(reader.block('contribution')).toString());
}

export function delivery(frame: Frame): string {
  if (frame.kind !== FrameKind.delivery) throw new Error(`answered with kind ${frame.kind} instead of a delivery`);
  return Buffer.from(new ByteReader(frame.payload, 'delivery').block('bytes')).toString();
}
