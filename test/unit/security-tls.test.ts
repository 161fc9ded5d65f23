/** The port at which invited agents call, attacked by who listens to, cuts, changes and repeats what an agent says there. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { call, callOnce } from '../../control/link/call.ts';
import { LinkServer } from '../../control/link/link-server.ts';
import { JOB_TOKEN_BYTES, type Invitation } from '../../control/link/secret.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { StreamLink } from '../../control/link/stream-link.ts';
import { noFrames } from '../rig/attack/bytes.ts';

const SOON_MS = 5000;
const KNOCKERS = 200;
const HOST = 'h1';
/** A handshake that somebody has changed may wait for bytes that will not come. */
const CHANGED_MS = 300;
/** Of the first record, behind the token: nobody looks at it (RFC 5246, appendix E), and whatever it says the handshake is the agent's. */
const RECORD_VERSION_AT = JOB_TOKEN_BYTES + 2;

interface Port {
  readonly invitation: Invitation;
  /** Who got through, and the frames that came from them. */
  readonly callers: string[];
  readonly frames: number[];
  readonly problems: (string | null)[];
}

const closers: (() => void)[] = [];
let port: Port;
beforeEach(async () => {
  port = await open();
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function open(): Promise<Port> {
  const secret = randomBytes(32);
  const [callers, frames, problems] = [new Array<string>(), new Array<number>(), new Array<string | null>()];
  const server = await LinkServer.listen({
    portRange: null,
    secret,
    identities: new Set([HOST]),
    onLink(identity, link) {
      callers.push(identity);
      link.open({ frame: ({ kind }) => void frames.push(kind), closed: (problem) => void problems.push(problem) });
      closers.push(() => link.abandon());
    },
  });
  closers.push(() => server.close());
  const text = secret.toString('base64');
  const invitation = {
    schemaVersion: 1,
    jobId: 'job',
    secret: text,
    addresses: ['127.0.0.1'],
    port: server.port,
  } as const;
  return { invitation, callers, frames, problems };
}

/** Somebody between the agent and the port, who may change what the agent says. */
async function between(target: number, change: (output: Buffer, before: number) => Buffer) {
  const output: Buffer[] = [];
  const server = createServer((agent: Socket) => {
    let bytes = 0; // of each call: an agent that is cut off calls again
    const launcher = connect(target, '127.0.0.1');
    agent.on('data', (chunk) => {
      output.push(chunk);
      launcher.write(change(chunk, bytes));
      bytes += chunk.length;
    });
    launcher.on('data', (chunk) => agent.write(chunk));
    for (const [one, other] of [
      [agent, launcher],
      [launcher, agent],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
    closers.push(() => agent.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, output: () => Buffer.concat(output) };
}

/** Calls and says a heartbeat; null if the key was not shown. */
async function speak(invitation: Invitation, limitMs = SOON_MS): Promise<StreamLink | null> {
  try {
    const socket = await callOnce(invitation, HOST, AbortSignal.timeout(limitMs));
    const link = new StreamLink(socket, socket);
    closers.push(() => link.abandon());
    link.open({ frame: () => undefined, closed: () => undefined });
    link.send(makeFrame(FrameKind.heartbeat));
    return link;
  } catch {
    return null;
  }
}

async function heard(count: number): Promise<void> {
  await expect.poll(() => port.frames.length).toBe(count);
}

/** Says bytes and waits until it is hung up on. */
async function stranger(bytes: Uint8Array): Promise<void> {
  const socket = connect(port.invitation.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.end(bytes);
  socket.resume();
  await closed;
}

const same = (output: Buffer): Buffer => output;

/** All that an agent says from its first byte to a frame, as somebody between saw it. */
async function recorded(): Promise<Buffer> {
  const other = port;
  port = await open();
  const relay = await between(port.invitation.port, same);
  await speak({ ...port.invitation, port: relay.port });
  await heard(1);
  port = other;
  return relay.output();
}

it("a replay of an agent's bytes opens no link at its own port or at that of another job", async () => {
  const relay = await between(port.invitation.port, same);
  await speak({ ...port.invitation, port: relay.port });
  await heard(1);
  await stranger(relay.output());
  expect(port.callers).toEqual([HOST]);
  await heard(1);
  const words = relay.output();
  port = await open();
  await stranger(words);
  expect(port.callers).toEqual([]);
});

it("an agent's bytes truncated at any point open no link", async () => {
  const words = await recorded();
  for (let length = 0; length < words.length; length++) await stranger(words.subarray(0, length));
  expect({ callers: port.callers, frames: port.frames }).toEqual({ callers: [], frames: [] });
  expect(await speak(port.invitation)).not.toBeNull();
});

it("an agent's bytes with any flipped bit deliver no frame", async () => {
  const length = (await recorded()).length;
  for (let at = 0; at < length; at += 1) {
    port = await open();
    const relay = await between(port.invitation.port, (output, before) => {
      const changed = Buffer.from(output);
      const index = at - before;
      if (index >= 0 && index < changed.length) changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
      return changed;
    });
    const link = await speak({ ...port.invitation, port: relay.port }, CHANGED_MS);
    // A record that is told to be longer waits for the rest until the agent leaves.
    link?.close();
    await expect.poll(() => port.problems.length).toBe(port.callers.length);
    expect({ at, frames: at === RECORD_VERSION_AT ? [] : port.frames }).toEqual({ at, frames: [] });
    for (const close of closers.splice(0)) close();
  }
});

it.each(noFrames)('a stranger that sends $name opens no link', async ({ bytes }) => {
  await stranger(bytes);
  expect(port.callers).toEqual([]);
  expect(await speak(port.invitation)).not.toBeNull();
});

it('an agent connects while many silent strangers are connected', async () => {
  const knocking = Array.from({ length: KNOCKERS }, () => connect(port.invitation.port, '127.0.0.1'));
  for (const socket of knocking) closers.push(() => socket.destroy());
  await Promise.all(knocking.map((socket) => once(socket, 'connect')));
  expect(await speak(port.invitation)).not.toBeNull();
  await heard(1);
});

it('a caller with the key that sends no frame loses its link with a message', async () => {
  const socket = await call(port.invitation, HOST, { limitMs: SOON_MS });
  closers.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await expect.poll(() => port.problems).toEqual(['it sent text, which is no frame: "GET / HTTP/1.1"']);
});

it('the kernel probes the connection of an agent that falls silent, and delays no small frame', async () => {
  const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
  const noDelay = vi.spyOn(Socket.prototype, 'setNoDelay');
  onTestFinished(() => {
    keepAlive.mockRestore();
    noDelay.mockRestore();
  });
  const socket = await call(port.invitation, HOST, { limitMs: SOON_MS });
  closers.push(() => socket.destroy());
  await vi.waitFor(() => expect(port.callers).toEqual([HOST]));
  expect(keepAlive.mock.calls).toContainEqual([true, 30_000]);
  expect(noDelay.mock.calls.flat()).not.toContain(false);
  expect(noDelay).toHaveBeenCalledWith(true);
});
