/** Links by TLS with the job's key: who has it gets through, nobody else does. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { call } from '../../control/link/call.ts';
import type { Invitation } from '../../control/link/secret.ts';
import { invite, type Invited } from '../rig/invited.ts';
import type { Link } from '../../control/link/link.ts';
import { StreamLink } from '../../control/link/stream-link.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { type Frame, FrameKind } from '../../control/messages/frame.ts';

const SOON_MS = 2000;
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server answers each frame with a heartbeat. */
function answer(link: Link): void {
  link.open({ frame: () => link.send(makeFrame(FrameKind.heartbeat)), closed: () => undefined });
}
function serve(...identities: string[]): Promise<Invited> {
  return invite(identities, answer, closers);
}

async function answerTo(invitation: Invitation, identity: string): Promise<Frame> {
  const socket = await call(invitation, identity, { limitMs: SOON_MS });
  const link = new StreamLink(socket, socket);
  closers.push(() => link.abandon());
  return new Promise((resolve, reject) => {
    link.open({ frame: resolve, closed: (problem) => reject(new Error(problem ?? 'closed')) });
    link.send(makeFrame(FrameKind.order));
  });
}

it('the link carries frames in both directions and has forward secrecy', async () => {
  const { callers, invitation } = await serve('h1', 'h2');
  expect((await answerTo(invitation, 'h2')).kind).toBe(FrameKind.heartbeat);
  expect(callers).toEqual(['h2']);
  const socket = await call(invitation, 'h1', { limitMs: SOON_MS });
  closers.push(() => socket.destroy());
  expect(socket.getCipher().standardName).toBe('TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256');
});

it('the caller connects to the address that answers', async () => {
  const { invitation } = await serve('h1');
  const addresses = ['127.0.0.2', '::1', '127.0.0.1'];
  expect((await answerTo({ ...invitation, addresses }, 'h1')).kind).toBe(FrameKind.heartbeat);
});

it('the caller stops trying other addresses once one has answered', async () => {
  const { invitation } = await serve('h1');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  closers.push(() => vi.useRealTimers());
  const calling = call({ ...invitation, addresses: ['127.0.0.1', '127.0.0.2', '127.0.0.3'] }, 'h1', {
    limitMs: SOON_MS,
  });
  vi.advanceTimersByTime(1);
  const socket = await calling;
  closers.push(() => socket.destroy());
  expect(vi.getTimerCount()).toBe(0);
});

it.each<[string, (invitation: Invitation) => Invitation, string]>([
  ['another key', (one) => ({ ...one, secret: randomBytes(32).toString('base64') }), 'h1'],
  ['an unknown identity', (one) => one, 'h9'],
  ['an empty identity', (one) => one, ''],
])('the server rejects a caller with %s', async (_, change, identity) => {
  const { callers, invitation } = await serve('h1');
  await expect(answerTo(change(invitation), identity)).rejects.toThrow();
  expect(callers).toEqual([]);
});

it('the server accepts each host once', async () => {
  const { callers, invitation } = await serve('h1');
  await answerTo(invitation, 'h1');
  await expect(answerTo(invitation, 'h1')).rejects.toThrow();
  expect(callers).toEqual(['h1']);
});

it('the server survives strangers that do not speak TLS', async () => {
  const { invitation } = await serve('h1');
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', Buffer.alloc(70_000, 0xff), randomBytes(5000)]) {
    const socket = connect(invitation.port, '127.0.0.1');
    socket.on('error', () => undefined); // hung up on
    socket.end(bytes);
    socket.resume();
    await new Promise((resolve) => {
      socket.on('close', resolve);
    });
  }
  expect((await answerTo(invitation, 'h1')).kind).toBe(FrameKind.heartbeat);
});

it('the failure lists the addresses tried', async () => {
  const { invitation } = await serve('h1');
  const nobody = { ...invitation, addresses: ['127.0.0.1'], port: 1 };
  await expect(call(nobody, 'h1', { limitMs: SOON_MS })).rejects.toThrow(/port 1: 127\.0\.0\.1: .*ECONNREFUSED/);
});
