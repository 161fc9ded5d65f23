/** The socket on which a job's launcher answers `ncclrun logs`, `attach`, `status`, `dump` and `stack`: who gets an answer, and which. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { FollowFrames, FollowKind } from '../../launcher/jobs/follow-wire.ts';
import { FollowServer } from '../../launcher/jobs/follow-server.ts';
import type { JobStatus } from '../../launcher/model/status.ts';

const status: JobStatus = {
  schemaVersion: 1,
  takenAt: 1,
  ranks: 1,
  hosts: 1,
  silent: [],
  outliers: [],
  groups: [],
  without: 0,
  verdicts: [],
};
const started = { type: 'job-started', time: 1, jobId: 'j', ranks: 1, hosts: ['a'], programs: [['p']] } as const;
const names = new Map<number, string>(Object.entries(FollowKind).map(([name, kind]) => [kind, name]));
const chunk = (text: string) =>
  ({ rank: 0, host: 'a', stream: 'stdout', time: 1, bytes: Buffer.from(text), partial: false }) as const;
const logs = {
  kept: true,
  ranks: null,
  stdoutIsTerminal: false,
  stderrIsTerminal: false,
  columns: null,
  environment: {},
};

const open: { close(): unknown }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** `has`: false for a job that has nothing to say yet. */
async function serving(has = true): Promise<FollowServer> {
  const server = await FollowServer.open('job', {
    look: { tagOutput: 'auto', timestampOutput: false, onHang: 'report' },
    keptNow: () => (has ? { started, dropped: 0, pieces: [{ type: 'output', chunk: chunk('early\n') }] } : null),
    recorderNow: () => Promise.resolve(null),
    stacksNow: () => Promise.resolve(null),
    statusNow: () => Promise.resolve(has ? status : null),
  });
  if (server === null) throw new Error('no server');
  open.push({ close: () => server.close(null) });
  return server;
}

class Client {
  readonly #socket: Socket;
  readonly #frames = new FollowFrames();
  readonly seen: string[] = [];
  readonly ended: Promise<unknown>;

  constructor(server: FollowServer) {
    this.#socket = connect(`\0${server.place.socket}`);
    this.ended = once(this.#socket, 'close');
    this.#socket.on('data', (bytes) => {
      for (const { kind, payload } of this.#frames.push(bytes))
        this.seen.push(`${names.get(kind)} ${Buffer.from(payload).toString('latin1')}`.trim());
    });
    this.#socket.on('error', () => undefined);
    open.push({ close: () => this.#socket.destroy() });
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  connected(): Promise<unknown> {
    return once(this.#socket, 'connect');
  }

  leave(): void {
    this.#socket.destroy();
  }
}

async function asked(server: FollowServer, request: object | string): Promise<string[]> {
  const client = new Client(server);
  client.write(typeof request === 'string' ? request : `${JSON.stringify({ key: server.place.key, ...request })}\n`);
  await client.ended;
  return client.seen;
}

describe('who gets an answer', () => {
  it('whoever has the key learns how the job fares, also in several pieces', async () => {
    const server = await serving();
    expect(await asked(server, { asks: 'status' })).toEqual([`status ${JSON.stringify(status)}`]);
    const client = new Client(server);
    const line = JSON.stringify({ key: server.place.key, asks: 'status' });
    client.write(line.slice(0, 10));
    await client.connected();
    client.write(`${line.slice(10)}\n`);
    await client.ended;
    expect(client.seen).toHaveLength(1);
  });

  it.each<[string, (key: string) => object | string]>([
    ['another key of the same length', (key) => ({ key: `${key.slice(0, -1)}x`, asks: 'status' })],
    ['the beginning of the key', (key) => ({ key: key.slice(0, -1), asks: 'status' })],
    ['more than the key', (key) => ({ key: `${key}0`, asks: 'status' })],
    ['no key', () => ({ key: '', asks: 'status' })],
    ['a question that does not exist', () => ({ asks: 'secrets' })],
    ['no JSON', () => 'hello\n'],
    ['more than 64 KiB without a line', () => 'x'.repeat(64 * 1024 + 1)],
  ])('whoever sends %s gets nothing, and the connection ends', async (_, request) => {
    const server = await serving();
    expect(await asked(server, request(server.place.key))).toEqual([]);
  });

  it('a job that cannot answer yet ends the connection', async () => {
    const server = await serving(false);
    for (const request of [
      { asks: 'status' },
      { asks: 'dump' },
      { stacks: { ranks: null } },
      { ...logs, follows: true },
    ])
      expect(await asked(server, request)).toEqual([]);
    expect(server.isFollowed).toBe(false);
  });

  it('the oldest of 65 connections that ask nothing ends', async () => {
    const server = await serving();
    const [first, second] = [new Client(server), new Client(server)];
    await Promise.all([first.connected(), second.connected()]);
    const others = Array.from({ length: 63 }, () => new Client(server));
    await Promise.all([first.ended, ...others.map((one) => one.connected())]);
    second.write(`${JSON.stringify({ key: server.place.key, asks: 'status' })}\n`);
    await second.ended;
    expect(second.seen).toHaveLength(1);
  });
});

describe('a reader of the output', () => {
  it('a reader that does not follow gets what is kept', async () => {
    const server = await serving();
    expect(await asked(server, { ...logs, follows: false })).toEqual(['begun', 'stdout early', 'shown']);
    expect(server.isFollowed).toBe(false);
  });

  it('a reader that follows gets output and the end, and one that leaves is forgotten', async () => {
    const server = await serving();
    const [stays, leaves] = [new Client(server), new Client(server)];
    for (const client of [stays, leaves])
      client.write(`${JSON.stringify({ key: server.place.key, ...logs, follows: true })}\n`);
    await expect.poll(() => [stays.seen.length, leaves.seen.length]).toEqual([2, 2]);
    leaves.leave();
    await leaves.ended;
    expect(server.isFollowed).toBe(true);
    server.output(chunk('late\n'));
    server.event({ type: 'notice', time: 1, message: 'a notice' });
    await server.close(null);
    await stays.ended;
    expect(stays.seen).toEqual(['begun', 'stdout early', 'stdout late', 'stderr ncclrun: a notice', 'shown']);
    expect(leaves.seen).toEqual(['begun', 'stdout early']);
  });
});
