/** Strangers at a Unix socket. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { promisify } from 'node:util';
import { encodeFrame, FrameDecoder, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind } from '../../../control/messages/frame.ts';

const execFileAsync = promisify(execFile);

/** User ids. */
export const ROOT = 0;
export const NOBODY = 65534;

/** A question that has no answer but a refusal; who gets it knows that all before it was looked at. */
const LAST_REQUEST = 0xffff;
const question = encodeFrame(makeFrame(FrameKind.gather, { request: LAST_REQUEST }));

/** The kinds of what is answered to `bytes`, until the other side hangs up or has answered all. */
export async function answersTo(path: string, bytes: Uint8Array): Promise<FrameKind[]> {
  const kinds: FrameKind[] = [];
  const socket = connect(path);
  const decoder = new FrameDecoder(({ kind, request }) => {
    if (request === LAST_REQUEST && kind === FrameKind.refused) socket.destroy();
    else kinds.push(kind);
  });
  socket.on('error', () => undefined); // hung up on while it speaks
  socket.on('data', (chunk) => decoder.push(chunk));
  await once(socket, 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes);
  socket.write(question);
  await closed;
  return kinds;
}

/** Says `bytes` and leaves in the middle of it. Resolves when the other side has left, too. */
export async function leaveAfter(path: string, bytes: Uint8Array): Promise<void> {
  const socket = connect(path);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.end(bytes);
  socket.resume();
  await closed;
}

const strangersProgram = `
const [path, said] = process.argv.slice(1).map((text) => Buffer.from(text, 'base64'));
const socket = require('node:net').connect(path.toString());
socket.on('connect', () => socket.write(said));
socket.on('data', () => { console.log('was answered'); socket.destroy(); });
socket.on('error', (error) => { if (error.code === 'EACCES') console.log('may not'); }); // else hung up on
socket.on('close', () => console.log('closed'));
`;

/** What becomes of who says `bytes` as that user: lines. */
export async function repliesOf(user: number, path: string, bytes: Uint8Array): Promise<string[]> {
  const who = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const parameters = [Buffer.from(path), Buffer.from(bytes)].map((part) => part.toString('base64'));
  const { stdout } = await execFileAsync('setpriv', [...who, process.execPath, '-e', strangersProgram, ...parameters]);
  return stdout.trim().split('\n');
}

/** What the first who connects to `path` says, in one piece; it is not answered. */
export async function record(path: string): Promise<{ readonly said: Promise<Uint8Array> }> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const server = createServer((socket) => {
    socket.once('data', (bytes) => {
      resolve(bytes);
      socket.destroy();
      server.close();
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return { said: promise };
}
