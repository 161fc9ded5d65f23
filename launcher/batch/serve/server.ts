/** Answers other commands of the same user: who may read the scheduler's note has its key. */
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import * as v from 'valibot';
import { randomBytes } from '../../../control/random-bytes.ts';
import { messageOf } from '../../../control/message-of.ts';
import { FailureError } from '../../model/failure-error.ts';
import { writeDurably } from '../attempt/durable-file.ts';
import type { BatchAnswer, BatchRequest } from './request.ts';
import { keyedRequest } from './request.ts';

const KEY_BYTES = 16;
const MAX_REQUEST_BYTES = 1024 * 1024;
const REQUEST_MS = 5000;

type Answering = (request: BatchRequest) => BatchAnswer | Promise<BatchAnswer>;

export class BatchServer {
  readonly #server: Server;
  readonly #note: string;

  private constructor(server: Server, note: string) {
    this.#server = server;
    this.#note = note;
  }

  /** `note`: path of the file that tells others where to ask. Rejects as node:net and node:fs do. */
  static async open(note: string, answer: Answering): Promise<BatchServer> {
    const key = randomBytes(KEY_BYTES).toString('hex');
    const socket = `ncclrun-batch-${randomBytes(KEY_BYTES).toString('hex')}`;
    const server = createServer((peer) => serve(peer, key, answer));
    server.listen(`\0${socket}`);
    await once(server, 'listening');
    writeDurably(note, JSON.stringify({ pid: process.pid, socket, key }));
    return new BatchServer(server, note);
  }

  close(): void {
    rmSync(this.#note, { force: true });
    this.#server.close();
  }
}

function serve(peer: Socket, key: string, answer: Answering): void {
  let text = '';
  peer.setEncoding('utf8');
  peer.setTimeout(REQUEST_MS, () => peer.destroy());
  peer.on('error', () => {});
  peer.on('data', (more: string) => {
    text += more;
    if (text.length > MAX_REQUEST_BYTES) return peer.destroy();
    if (!text.includes('\n')) return peer;
    peer.setTimeout(0); // Slurm may take its time for an answer
    void reply(peer, answerTo(text, key, answer));
    text = '';
    return peer;
  });
}

async function reply(peer: Socket, answer: Promise<BatchAnswer | null>): Promise<void> {
  const said = await answer;
  if (said === null) peer.destroy();
  else peer.end(`${JSON.stringify(said)}\n`);
}

/** Null: it was no request, or the key is another. */
async function answerTo(line: string, key: string, answer: Answering): Promise<BatchAnswer | null> {
  const read = v.safeParse(keyedRequest, parsed(line));
  if (!read.success || read.output.key !== key) return null;
  try {
    return await answer(read.output.request);
  } catch (error) {
    const failure =
      error instanceof FailureError && (error.failure.type === 'usage' || error.failure.type === 'system')
        ? error.failure
        : null;
    return { answer: 'refused', message: failure?.message ?? messageOf(error), remedy: failure?.remedy ?? null };
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
