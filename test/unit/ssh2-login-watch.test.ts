/** A long login: whether the host is alive shows a second connection to its sshd. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { ALIVE_COUNT, ALIVE_SECONDS } from '../../launcher/remote/shell/silence.ts';
import { LoginWatch } from '../../launcher/remote/ssh2/login-watch.ts';

const EVERY_MS = ALIVE_SECONDS * 1000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** So many looks of the watch, of which each leaves the sockets a moment. */
async function wait(times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    vi.advanceTimersByTime(EVERY_MS);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A host that answers each connection with `answer`; `null`: it has no such port. */
async function watched(answer: ((socket: Socket) => void) | null) {
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined);
    answer?.(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  onTestFinished(() => {
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  const dialled: Socket[] = [];
  let dials = 0;
  let silences = 0;
  const dial = async (): Promise<Socket> => {
    dials += 1;
    if (answer === null) throw new Error('refused');
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    dialled.push(socket);
    return socket;
  };
  const watch = new LoginWatch(dial, () => void (silences += 1));
  onTestFinished(() => watch.stop());
  return { watch, dialled, dials: () => dials, silences: () => silences };
}

const often = 3 * ALIVE_COUNT;

test('a host that greets is alive, and each greeting ends its connection', async () => {
  const { dialled, dials, silences } = await watched((socket) => void socket.write('SSH-2.0-test\r\n'));
  await wait(often);
  expect([dials(), silences()]).toEqual([often, 0]);
  expect(dialled.map(({ destroyed }) => destroyed)).toEqual(dialled.map(() => true));
});

test('a host that rejects is alive', async () => {
  const rejecting = await watched((socket) => void socket.end());
  await wait(often);
  expect([rejecting.dials(), rejecting.silences()]).toEqual([often, 0]);
  const closed = await watched(null);
  await wait(often);
  expect([closed.dials(), closed.silences()]).toEqual([often, 0]);
});

test('a host that only accepts is silent, and is asked by one connection at a time', async () => {
  const { dialled, dials, silences, watch } = await watched(() => undefined);
  await wait(often);
  expect([dials(), silences()]).toEqual([1, 1]);
  watch.stop();
  expect(dialled[0]?.destroyed).toBe(true);
});

test('a login that goes on is no silence', async () => {
  const { silences, watch } = await watched(() => undefined);
  for (let time = 0; time < often; time++) {
    await wait(1);
    watch.received();
  }
  expect(silences()).toBe(0);
});

test('after its end nothing is asked, and a connection that comes late is closed', async () => {
  const { dials, silences, watch, dialled } = await watched(() => undefined);
  vi.advanceTimersByTime(EVERY_MS);
  watch.stop();
  await wait(often);
  expect([dials(), silences()]).toEqual([1, 0]);
  await vi.waitFor(() => expect(dialled[0]?.destroyed).toBe(true));
});
