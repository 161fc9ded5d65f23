/**
 * Serves a job's output to `ncclrun logs` and `attach`, on an abstract Unix socket: there is nothing to remove, whatever ends the launcher. Who may
 * read the job's note has the key, and nobody else.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { randomBytes } from '../../control/random-bytes.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobStatus } from '../model/status.ts';
import type { Recorder } from '../model/recorder.ts';
import type { StackReport } from '../model/stack.ts';
import type { JobResult } from '../model/types.ts';
import {
  type AskRequest,
  followFrame,
  FollowKind,
  type FollowRequest,
  MAX_REQUEST_BYTES,
  parseFollowRequest,
} from './follow-wire.ts';
import { Follower } from './follower.ts';
import type { JobLook, KeptOutput } from './tail.ts';
import type { FollowPlace } from './note.ts';

const KEY_BYTES = 16;
/** Connections that have not asked; one more takes the place of the oldest. */
const MAX_STRANGERS = 64;
/** For the request of somebody who connects. */
const REQUEST_MS = 5000;
const NEWLINE = 0x0a;

/** The job that is followed. */
interface Followed {
  readonly look: JobLook;
  keptNow(this: void): KeptOutput | null;
  /** Null before there is anything that could answer. */
  recorderNow(this: void): Promise<Recorder | null>;
  stacksNow(this: void, ranks: readonly number[] | null): Promise<StackReport | null>;
  /** Likewise. */
  statusNow(this: void): Promise<JobStatus | null>;
}

export class FollowServer {
  readonly place: FollowPlace;
  readonly #look: JobLook;
  readonly #keptNow: () => KeptOutput | null;
  readonly #recorderNow: Followed['recorderNow'];
  readonly #stacksNow: Followed['stacksNow'];
  readonly #statusNow: Followed['statusNow'];
  readonly #server: Server;
  /** That have not asked yet. */
  readonly #strangers = new Set<Socket>();
  readonly #followers = new Set<Follower>();

  private constructor(jobId: string, { look, keptNow, recorderNow, stacksNow, statusNow }: Followed) {
    const [name = '', key = ''] = [randomBytes(KEY_BYTES), randomBytes(KEY_BYTES)].map((bytes) =>
      bytes.toString('hex'),
    );
    this.place = { socket: `ncclrun-output-${jobId}-${name}`, key };
    this.#look = look;
    this.#keptNow = keptNow;
    this.#recorderNow = recorderNow;
    this.#stacksNow = stacksNow;
    this.#statusNow = statusNow;
    this.#server = createServer((socket) => this.#enter(socket));
  }

  /** Null where the system does not let us. */
  static async open(jobId: string, followed: Followed): Promise<FollowServer | null> {
    const made = new FollowServer(jobId, followed);
    try {
      made.#server.listen(`\0${made.place.socket}`).unref();
      await once(made.#server, 'listening');
      made.#server.on('error', () => undefined); // no descriptor for somebody who comes later
      return made;
    } catch {
      return null;
    }
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  event(event: JobEvent): void {
    for (const follower of this.#followers) follower.event(event);
  }

  output(chunk: OutputChunk): void {
    for (const follower of this.#followers) follower.output(chunk);
  }

  /** Resolves when all who read have what was sent; others are not waited for. */
  async close(result: JobResult | null): Promise<void> {
    this.#server.close();
    for (const socket of this.#strangers) socket.destroy();
    await Promise.all(Array.from(this.#followers, (follower) => follower.end(result)));
  }

  #enter(socket: Socket): void {
    const [oldest] = this.#strangers;
    if (this.#strangers.size >= MAX_STRANGERS) oldest?.destroy();
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => socket.destroy(), REQUEST_MS).unref();
    socket.unref();
    this.#strangers.add(socket);
    const read = (bytes: Buffer): void => {
      chunks.push(bytes);
      const all = Buffer.concat(chunks);
      const end = all.indexOf(NEWLINE);
      if (end === -1 && all.length <= MAX_REQUEST_BYTES) return;
      clearTimeout(timer);
      socket.off('data', read);
      this.#strangers.delete(socket);
      const request = end === -1 ? null : parseFollowRequest(all.toString('utf8', 0, end));
      if (request === null || !isSame(request.key, this.place.key)) socket.destroy();
      else if ('asks' in request) void this.#answer(socket, request.asks);
      else if ('stacks' in request) void this.#send(socket, FollowKind.stacks, this.#stacksNow(request.stacks.ranks));
      else this.#follow(socket, request);
    };
    socket.on('data', read);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      this.#strangers.delete(socket);
    });
  }

  #answer(socket: Socket, asks: AskRequest['asks']): Promise<void> {
    return asks === 'dump'
      ? this.#send(socket, FollowKind.recorder, this.#recorderNow())
      : this.#send(socket, FollowKind.status, this.#statusNow());
  }

  async #send(
    socket: Socket,
    kind: FollowKind,
    read: Promise<Recorder | StackReport | JobStatus | null>,
  ): Promise<void> {
    const answer = await read;
    if (answer === null || socket.destroyed) return void socket.destroy();
    socket.end(followFrame(kind, Buffer.from(JSON.stringify(answer))));
  }

  #follow(socket: Socket, request: FollowRequest): void {
    const kept = this.#keptNow();
    if (kept === null) return void socket.destroy();
    const follower = new Follower(socket, request, this.#look);
    follower.begin(kept);
    if (!request.follows) return void follower.end(null);
    this.#followers.add(follower);
    socket.on('close', () => this.#followers.delete(follower));
    socket.resume(); // its end is seen only by who reads
  }
}

/** Takes as long for every key. */
function isSame(given: string, key: string): boolean {
  let difference = given.length ^ key.length;
  for (let index = 0; index < key.length; index += 1) {
    difference |= (given.codePointAt(index) ?? 0) ^ (key.codePointAt(index) ?? 0);
  }
  return difference === 0;
}
