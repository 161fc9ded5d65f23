/** Calls of those who were invited, while strangers flood the port, and when their connections are closed under them. */
import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { call } from '../../control/link/call.ts';
import { secretTls, tokenOf, type Invitation } from '../../control/link/secret.ts';
import { invite, type Invited } from '../rig/invited.ts';
import { until } from '../rig/until.ts';

const LIMIT_MS = 15_000;
const KNOCKS = 1000;

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server that says nothing. */
function serve(identities: readonly string[]): Promise<Invited> {
  return invite(identities, (link) => link.open({ frame: () => undefined, closed: () => undefined }), closers);
}

async function admitted(invitation: Invitation, identity: string, onRetry?: (why: string) => void): Promise<void> {
  const socket = await call(invitation, identity, { limitMs: LIMIT_MS, ...(onRetry && { onRetry }) });
  closers.push(() => socket.destroy());
}

/** A process that connects to the port without end. */
async function knocker(port: number, from: string): Promise<{ readonly made: () => number }> {
  const program = new URL('../rig/programs/knocker.ts', import.meta.url).pathname;
  const child: ChildProcess = fork(program, [String(port), from], { execArgv: ['--no-warnings'] });
  closers.push(() => child.kill('SIGKILL'));
  let made = 0;
  child.on('message', (count) => (made = Number(count)));
  await until('strangers knock', () => made >= KNOCKS, LIMIT_MS);
  return { made: () => made };
}

const eight = Array.from({ length: 8 }, (_, index) => `h${index}`);

describe('calls while strangers flood the port', () => {
  it.each([
    ['other addresses', '127.0.0.9'],
    ['the address of the invited callers', '127.0.0.1'],
  ])('all invited callers connect while strangers flood from %s', async (_name, from) => {
    const { callers, invitation } = await serve(eight);
    const strangers = await knocker(invitation.port, from);
    await Promise.all(eight.map((name) => admitted(invitation, name)));
    await until('the callers have links', () => callers.length === eight.length);
    expect(callers.toSorted()).toEqual(eight);
    const before = strangers.made();
    await until('strangers still knock', () => strangers.made() > before + KNOCKS, LIMIT_MS);
  });
});

/** In front of the port, and closes the first `drops` connections once somebody has spoken there. */
async function dropping(
  target: number,
  drops: number,
  then: 'then joined' | 'then silent' = 'then joined',
): Promise<number> {
  let dropped = 0;
  const server = createServer((caller: Socket) => {
    caller.on('error', () => undefined);
    if (dropped < drops) {
      dropped += 1;
      caller.once('data', () => caller.destroy());
      return;
    }
    if (then === 'then silent') {
      closers.push(() => caller.destroy());
      return;
    }
    const launcher = connect(target, '127.0.0.1');
    launcher.on('error', () => undefined);
    caller.pipe(launcher).pipe(caller);
    closers.push(() => caller.destroy());
  });
  closers.push(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

describe('a caller whose connection is closed before the handshake is done', () => {
  it('the caller reports the reason and retries until it connects', async () => {
    const { callers, invitation } = await serve(['h1']);
    const port = await dropping(invitation.port, 2);
    const whys: string[] = [];
    await admitted({ ...invitation, port }, 'h1', (why) => whys.push(why));
    expect(callers).toEqual(['h1']);
    const why = `the launcher cannot be reached at port ${port}: 127.0.0.1: the connection was closed before the handshake was done`;
    expect(whys).toEqual([why, why]);
  });

  it('the caller reports the reason also when it gives up during a call that nobody answers', async () => {
    const { invitation } = await serve(['h1']);
    const silent = await dropping(invitation.port, 1, 'then silent');
    await expect(call({ ...invitation, port: silent }, 'h1', { limitMs: 500 })).rejects.toThrow(
      /: the connection was closed before the handshake was done \(2 calls in 0\.5 s\)$/,
    );
  });

  it('the caller reports the reason when it gives up', async () => {
    const { invitation } = await serve(['h1']);
    const port = await dropping(invitation.port, Infinity);
    await expect(call({ ...invitation, port }, 'h1', { limitMs: 500 })).rejects.toThrow(
      /: 127\.0\.0\.1: the connection was closed before the handshake was done \(\d+ calls in 0\.5 s\)$/,
    );
  });
});

/** All that the port answers to a caller with the token, up to its end, and the error that TLS makes of it. */
async function answerTo({ port }: Invitation, token: Buffer, key: Buffer, identity: string) {
  const socket = connect(port, '127.0.0.1');
  let bytes = 0;
  socket.write(token);
  const tls = connectTls({ ...secretTls, socket, pskCallback: () => ({ psk: key, identity }) });
  const error: Promise<string> = new Promise((resolve) => {
    tls.once('error', (one) => resolve('code' in one ? String(one.code) : one.message));
  });
  const output = await error;
  bytes = socket.bytesRead;
  tls.destroy();
  return { output, bytes };
}

it('the port answers an unknown identity like a wrong key', async () => {
  const { invitation, secret } = await serve(['h1']);
  const token = tokenOf(secret);
  const wrongKey = await answerTo(invitation, token, randomBytes(32), 'h1');
  const wrongName = await answerTo(invitation, token, randomBytes(32), 'h9');
  const bothWrong = await answerTo(invitation, token, secret, 'h9');
  expect(wrongKey.output).toMatch(/ERR_SSL/);
  expect(wrongName).toEqual(wrongKey);
  expect(bothWrong).toEqual(wrongKey);
});

it('the port closes a connection with a wrong token without sending a byte', async () => {
  const { invitation, secret } = await serve(['h1']);
  const socket = connect(invitation.port, '127.0.0.1');
  const token = tokenOf(secret);
  token.writeUInt8(token.readUInt8(31) ^ 1, 31);
  socket.on('error', () => undefined);
  socket.write(token);
  socket.resume();
  await once(socket, 'close');
  expect(socket.bytesRead).toBe(0);
});
