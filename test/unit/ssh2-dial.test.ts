/** Sockets of our own ssh: how they end. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { dial, hangUp } from '../../launcher/remote/ssh2/dial.ts';
import { hopSettings } from '../../launcher/remote/ssh2/settings.ts';

test('a connection with unread bytes ends without a reset', async () => {
  const written = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  const server = createServer((socket) => {
    socket.write('unread', () => written.resolve());
    socket.resume();
    socket.on('end', () => end.resolve('end'));
    socket.on('error', (error) => end.resolve(error.message));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const settings = hopSettings(
    { name: '127.0.0.1', user: null, port },
    { settings: new Map(), files: [], error: null },
  );
  const socket = await dial(settings, new AbortController().signal);
  socket.pause();
  await written.promise;
  hangUp(socket);
  expect(await end.promise).toBe('end');
  server.close();
});
