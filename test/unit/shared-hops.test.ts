/** Connections to jump hosts that several users share, over real sockets to a server that never speaks ssh. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HopSettings } from '../../launcher/remote/ssh2/settings.ts';
import { SharedHops, type Passage } from '../../launcher/remote/ssh2/shared-hops.ts';

let server: Server;
const sockets: Socket[] = [];
const shared = { hops: new SharedHops() };

beforeEach(async () => {
  shared.hops = new SharedHops();
  server = createServer((socket) => sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
  await once(server, 'close');
});

function portOf(listening: Server): number {
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { port }: AddressInfo = address;
  return port;
}

const settingsOf = (changes: Partial<HopSettings> = {}): HopSettings => ({
  name: 'gate',
  hostName: '127.0.0.1',
  port: portOf(server),
  user: 'me',
  keyName: 'gate',
  keyPort: 22,
  identityFiles: [],
  identitiesOnly: true,
  agent: null,
  userKnownHosts: [],
  globalKnownHosts: [],
  strict: 'refuse',
  hashKnownHosts: false,
  connectSeconds: 60,
  family: 0,
  bindAddress: null,
  environment: {},
  jumps: [],
  kex: null,
  ciphers: null,
  macs: null,
  hostKeys: null,
  ...changes,
});

/** What is known of a host never arrives, so that no connection is ever ready. */
function enter(...hops: readonly HopSettings[]): Passage {
  const passage = shared.hops.enter(hops, () => new Promise(() => {}));
  if (passage === null) throw new Error('the path has no host');
  return passage;
}

test('a path without hosts needs no connection', () => {
  expect(shared.hops.enter([], () => new Promise(() => {}))).toBeNull();
});

test('users of one path share one connection, which ends with the last of them', async () => {
  const [first, second] = [enter(settingsOf()), enter(settingsOf())];
  expect(second.hop).toBe(first.hop);
  expect(second.opened).toBe(first.opened);
  await once(server, 'connection');
  first.leave();
  second.leave();
  await first.hop.closed;
  expect(sockets).toHaveLength(1);
});

test('a user that leaves twice counts once', () => {
  const [first, second] = [enter(settingsOf()), enter(settingsOf())];
  first.leave();
  first.leave();
  expect(first.hop.isClosed).toBe(false);
  second.leave();
  expect(first.hop.isClosed).toBe(true);
});

test.each<[string, Partial<HopSettings>]>([
  ['user', { user: 'other' }],
  ['host name', { hostName: 'localhost' }],
  ['name of the key', { keyName: 'other' }],
  ['port', { port: 1 }],
])('users with another %s get a connection of their own', (_, changes) => {
  const [first, second] = [enter(settingsOf()), enter(settingsOf(changes))];
  expect(second.hop).not.toBe(first.hop);
  first.leave();
  expect([first.hop.isClosed, second.hop.isClosed]).toEqual([true, false]);
  second.leave();
});

test('a closed connection is replaced, and who leaves it does not end the new one', () => {
  const before = enter(settingsOf());
  before.hop.destroy();
  const after = enter(settingsOf());
  expect(after.hop).not.toBe(before.hop);
  before.leave();
  const third = enter(settingsOf());
  expect(third.hop).toBe(after.hop);
  after.leave();
  third.leave();
  expect(after.hop.isClosed).toBe(true);
});

test('a connection that has ended with its last user is made again for the next one', () => {
  const before = enter(settingsOf());
  before.leave();
  const after = enter(settingsOf());
  expect(after.hop).not.toBe(before.hop);
  expect(after.hop.isClosed).toBe(false);
  after.leave();
});

test('a connection through another host holds the connection to that host', () => {
  const gate = settingsOf();
  const near = enter(gate);
  const far = enter(gate, settingsOf({ name: 'far', keyName: 'far' }));
  expect(far.hop.settings.name).toBe('far');
  near.leave();
  expect(near.hop.isClosed).toBe(false);
  far.leave();
  expect([far.hop.isClosed, near.hop.isClosed]).toEqual([true, true]);
});
