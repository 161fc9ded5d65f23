import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, openSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeFrame, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { loadNative } from '../../worker/engine/load.ts';
import type { LocalServer, LocalServerEvent, Native } from '../../worker/engine/native.ts';

const native = loadNative();
const LOAD = join(import.meta.dirname, '../../worker/engine/load.ts');

/** An open server and everything it said. */
class Server {
  readonly path = join(mkdtempSync(join(tmpdir(), 'server-')), 'socket');
  readonly events: LocalServerEvent[] = [];
  readonly handle: LocalServer;
  onEvent: () => void = () => undefined;

  constructor(maxPayloadBytes = 1 << 20) {
    this.handle = native.localServerOpen(this.path, maxPayloadBytes, (event) => {
      this.events.push(event);
      this.onEvent();
    });
  }

  of<T extends LocalServerEvent['type']>(type: T, connection?: number): Extract<LocalServerEvent, { type: T }>[] {
    return this.events.filter(
      (event): event is Extract<LocalServerEvent, { type: T }> =>
        event.type === type && (connection === undefined || event.connection === connection),
    );
  }

  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.onEvent = () => {
        if (holds()) resolve();
      };
      this.onEvent();
    });
  }

  send(connection: number, request: number, payload: Uint8Array = new Uint8Array()): void {
    native.localServerSend(this.handle, connection, FrameKind.delivery, 7, 8, request, payload, []);
  }
}

const nothing = (): void => undefined;

/** As JavaScript may call it, with arguments that TypeScript refuses. */
function callWith(name: keyof Native, ...wrong: readonly unknown[]): unknown {
  const called: unknown = Reflect.get(native, name);
  return typeof called === 'function' ? Reflect.apply(called, native, wrong) : null;
}

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

function open(maxPayloadBytes?: number): Server {
  const server = new Server(maxPayloadBytes);
  cleanups.push(() => {
    if (existsSync(server.path)) native.localServerClose(server.handle);
  });
  return server;
}

function client(server: Server): { socket: Socket; frames: Frame[]; until: (holds: () => boolean) => Promise<void> } {
  const socket = connect(server.path);
  socket.on('error', () => undefined);
  const frames: Frame[] = [];
  const decoder = new FrameDecoder((frame) => frames.push(frame));
  let look = nothing;
  socket.on('data', (chunk: Buffer) => {
    decoder.push(chunk);
    look();
  });
  socket.on('close', () => look());
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (holds()) resolve();
      };
      look();
    });
  return { socket, frames, until };
}

/** A Node process that runs `script` as a module; `args` are its process.argv from 2. */
function node(script: string, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, '--', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanups.push(() => void child.kill('SIGKILL'));
  return child;
}

function exitOf(child: ChildProcess): Promise<number | string | null> {
  return new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
}

describe('frames', () => {
  it('frames arrive in both directions, in order and with every field', async () => {
    const server = open();
    const { socket, frames, until } = client(server);
    const payload = Buffer.from('hello');
    for (let request = 0; request < 2000; ++request) {
      socket.write(encodeFrame(makeFrame(FrameKind.gather, { flags: 3, subject: 0xffff_fffe, request, payload })));
    }
    await server.until(() => server.of('frame').length === 2000);
    expect(server.of('connected')).toEqual([{ type: 'connected', connection: 1, pid: process.pid }]);
    expect(server.of('frame').map(({ request }) => request)).toEqual(Array.from({ length: 2000 }, (_, i) => i));
    expect(server.of('frame')[5]).toEqual({
      type: 'frame',
      connection: 1,
      kind: FrameKind.gather,
      flags: 3,
      subject: 0xffff_fffe,
      request: 5,
      payload,
    });
    const large = Buffer.alloc(3 << 20, 'x'); // more than a socket holds
    server.send(1, 1, large);
    for (let request = 2; request <= 500; ++request) server.send(1, request);
    await until(() => frames.length === 500);
    expect(frames.map(({ request }) => request)).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
    expect(frames[0]).toMatchObject({ kind: FrameKind.delivery, flags: 7, subject: 8 });
    expect(Buffer.compare(frames[0]?.payload ?? new Uint8Array(), large)).toBe(0);
    socket.end();
    await server.until(() => server.of('closed').length === 1);
    expect(server.of('closed')).toEqual([{ type: 'closed', connection: 1, reason: '' }]);
  });

  it('a peer that does not read does not block other connections', async () => {
    const server = open();
    const stuck = client(server);
    stuck.socket.pause();
    await server.until(() => server.of('connected').length === 1);
    for (let i = 0; i < 20; ++i) server.send(1, i, Buffer.alloc(1 << 20));
    const other = client(server);
    await server.until(() => server.of('connected').length === 2);
    server.send(2, 42);
    await other.until(() => other.frames.length === 1);
    stuck.socket.resume();
    await stuck.until(() => stuck.frames.length === 20);
    stuck.socket.destroy();
    other.socket.destroy();
  });

  it('no frame is lost and memory stays bounded while the event loop is busy', async () => {
    const server = open(8 << 20);
    const script = `
      import { connect } from 'node:net';
      const frame = Buffer.alloc(16 + (4 << 20));
      frame.writeUInt32LE(4 << 20, 0); frame[4] = 1; frame[5] = 0x53;
      const socket = connect(process.argv.at(-1));
      for (let i = 0; i < 64; ++i) { const copy = Buffer.from(frame); copy.writeUInt32LE(i, 12); socket.write(copy); }
      socket.end();`;
    node(script, server.path);
    await server.until(() => server.of('frame').length > 0);
    const before = process.memoryUsage().rss;
    const end = Date.now() + 400;
    while (Date.now() < end) void 0; // 256 MB want to come in
    expect(process.memoryUsage().rss - before).toBeLessThan(140 << 20);
    await server.until(() => server.of('closed').length === 1);
    expect(server.of('frame').map(({ request }) => request)).toEqual(Array.from({ length: 64 }, (_, i) => i));
  });
});

describe('invalid frames', () => {
  const cases: readonly [string, Buffer, RegExp][] = [
    ['a frame of another version', Buffer.alloc(16, 9), /no frame: version 9, ours is 1/],
    [
      'a frame that is too large',
      encodeFrame(makeFrame(FrameKind.gather, { payload: Buffer.alloc(1025) })),
      /1025 bytes; 1024 is the most/,
    ],
    [
      'a truncated frame',
      encodeFrame(makeFrame(FrameKind.gather, { payload: Buffer.alloc(10) })).subarray(0, 20),
      /inside a frame, after 20/,
    ],
  ];
  it.each(cases)('%s closes only its own connection', async (_name, bytes, reason) => {
    const server = open(1024);
    const other = client(server);
    await server.until(() => server.of('connected').length === 1);
    const { socket } = client(server);
    socket.end(bytes);
    await server.until(() => server.of('closed').length === 1);
    expect(server.of('closed')[0]).toMatchObject({ connection: 2, reason: expect.stringMatching(reason) });
    server.send(1, 5);
    await other.until(() => other.frames.length === 1);
    other.socket.destroy();
  });
});

describe('connected processes', () => {
  it('the server reports the exit of a process whose child still holds the socket', async () => {
    const server = open();
    const script = `
      import { connect } from 'node:net';
      import { spawn } from 'node:child_process';
      const socket = connect(process.argv.at(-1), () => {
        const child = spawn('sleep', ['1000'], { stdio: ['ignore', socket, 'ignore'] });
        console.log(child.pid);
      });`;
    const child = node(script, server.path);
    const grandchild = await new Promise<number>((resolve) =>
      child.stdout?.once('data', (text) => resolve(Number(text))),
    );
    cleanups.push(() => process.kill(grandchild, 'SIGKILL'));
    await server.until(() => server.of('connected').length === 1);
    expect(server.of('connected')[0]).toMatchObject({ pid: child.pid });
    expect(server.of('died')).toEqual([]);
    child.kill('SIGKILL');
    await server.until(() => server.of('closed').length === 1);
    expect(server.events.map(({ type }) => type)).toEqual(['connected', 'died', 'closed']);
  });

  it('the server reports the exit of a process that disconnected before', async () => {
    const server = open();
    const child = node(
      `import { connect } from 'node:net';
       const socket = connect(process.argv.at(-1), () => socket.end());
       setInterval(() => undefined, 1000);`,
      server.path,
    );
    await server.until(() => server.of('closed').length === 1);
    expect(server.of('died')).toEqual([]);
    child.kill('SIGKILL');
    await server.until(() => server.of('died').length === 1);
  });

  it('the server says when it has reported all that was sent before, to each who asks', async () => {
    const server = open();
    const { socket } = client(server);
    await new Promise((resolve) => socket.once('connect', resolve));
    for (let request = 0; request < 50; ++request) socket.write(encodeFrame(makeFrame(FrameKind.gather, { request })));
    native.localServerCatchUp(server.handle);
    native.localServerCatchUp(server.handle);
    await server.until(() => server.of('caughtUp').length === 2);
    const types = server.events.map(({ type }) => type);
    expect(types).toEqual(['connected', ...Array.from({ length: 50 }, () => 'frame'), 'caughtUp', 'caughtUp']);
  });

  it('the server catches up with a process that writes without end, although we are slow to take its frames', async () => {
    const server = open();
    const frame = Buffer.from(encodeFrame(makeFrame(FrameKind.gather, { payload: new Uint8Array(60_000) })));
    const child = node(
      `import { connect } from 'node:net';
       const frame = Buffer.from('${frame.subarray(0, 16).toString('hex')}'.padEnd(${frame.length * 2}, '0'), 'hex');
       const socket = connect(process.argv.at(-1), () => {
         const write = () => { while (socket.write(frame)); };
         socket.on('drain', write);
         write();
       });`,
      server.path,
    );
    await server.until(() => server.of('frame').length > 0);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200); // the queue of events fills
    native.localServerCatchUp(server.handle);
    await server.until(() => server.of('caughtUp').length === 1);
    child.kill('SIGKILL');
    await server.until(() => server.of('died').length === 1);
  });

  it.runIf(process.getuid?.() === 0)('the server rejects another user despite mode 0666', async () => {
    const server = open();
    expect(statSync(server.path).mode & 0o777).toBe(0o600);
    chmodSync(server.path, 0o666);
    chmodSync(join(server.path, '..'), 0o755);
    const child = spawn(
      'setpriv',
      [
        '--reuid=65534',
        '--clear-groups',
        'sh',
        '-c',
        'exec 3<>/dev/null; exec "$@"',
        'sh',
        process.execPath,
        '-e',
        `const socket = require('node:net').connect(${JSON.stringify(server.path)});
       socket.on('close', () => console.log('closed')); socket.on('error', (e) => console.log(e.code)); socket.resume();`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    child.stdout.on('data', (text) => (output += String(text)));
    expect(await exitOf(child)).toBe(0);
    expect(output).toContain('closed');
    expect(server.events).toEqual([]);
  });
});

describe('the server', () => {
  it('a disconnect sends what was queued and reports no further event', async () => {
    const server = open();
    const { socket, frames, until } = client(server);
    await server.until(() => server.of('connected').length === 1);
    server.send(1, 9, Buffer.alloc(1 << 20));
    native.localServerDisconnect(server.handle, 1);
    await until(() => socket.destroyed);
    expect(frames).toHaveLength(1);
    expect(server.of('closed')).toEqual([]);
  });

  it('a server closes once, removes its file and rejects later use', async () => {
    const server = open();
    const { socket, until } = client(server);
    await server.until(() => server.of('connected').length === 1);
    native.localServerClose(server.handle);
    await until(() => socket.destroyed);
    expect(existsSync(server.path)).toBe(false);
    const closed = { name: 'NativeError', code: 'EBADF', message: expect.stringContaining('closed before') };
    expect(() => native.localServerClose(server.handle)).toThrow(expect.objectContaining(closed));
    expect(() => server.send(1, 1)).toThrow(expect.objectContaining(closed));
  });

  it('the server rejects invalid paths, descriptors and arguments with the reason', () => {
    const server = open();
    const listen = (path: string) => () => native.localServerOpen(path, 1024, () => undefined);
    expect(listen(server.path)).toThrow(
      expect.objectContaining({ code: 'EADDRINUSE', message: expect.stringContaining(server.path) }),
    );
    expect(listen('/no/such/directory/socket')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    expect(listen(`/tmp/${'x'.repeat(200)}`)).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }));
    const adopt = (descriptor: number) => () => native.localServerAdopt(descriptor, 1024, () => undefined);
    expect(adopt(9999)).toThrow(expect.objectContaining({ code: 'EBADF' }));
    const file = openSync('/dev/null', 'r');
    expect(adopt(file)).toThrow(expect.objectContaining({ code: 'ENOTSOCK' }));
    expect(() => server.send(-1, 1)).toThrow(new TypeError('connection is not a whole number in range'));
    const handle = native.segmentCreate(4096);
    expect(() => callWith('localServerClose', handle)).toThrow(new TypeError('server is not a local server'));
    native.close(handle);
  });

  it('an exception of the event callback reaches the process', async () => {
    const script = `
      const { loadNative } = await import(${JSON.stringify(LOAD)});
      import { connect } from 'node:net';
      process.on('uncaughtException', (error) => { console.log(error.message); process.exit(7); });
      loadNative().localServerOpen(process.argv.at(-1), 1024, () => { throw new Error('mine'); });
      connect(process.argv.at(-1));`;
    const child = node(script, join(mkdtempSync(join(tmpdir(), 'server-')), 'socket'));
    expect(await exitOf(child)).toBe(7);
  });

  const ends: readonly [string, string][] = [
    ['when nothing else keeps it alive', ''],
    ['with process.exit', 'process.exit(0);'],
    ['after a garbage collection', 'globalThis.gc?.();'],
  ];
  it.each(ends)('an open server lets its process end %s', async (_name, end) => {
    const script = `
      import { connect } from 'node:net';
      const { loadNative } = await import(${JSON.stringify(LOAD)});
      const path = process.argv.at(-1);
      const awake = setInterval(() => undefined, 1000);
      await new Promise((resolve) => { loadNative().localServerOpen(path, 1024, resolve); connect(path).unref(); });
      clearInterval(awake);
      ${end}`;
    const child = node(script, join(mkdtempSync(join(tmpdir(), 'server-')), 'socket'));
    expect(await exitOf(child)).toBe(0);
  });

  it('the server ends with its worker thread', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'server-')), 'socket');
    const script = `
      import { Worker } from 'node:worker_threads';
      import { existsSync } from 'node:fs';
      const code = \`
        const { connect } = require('node:net');
        const { parentPort } = require('node:worker_threads');
        import(${JSON.stringify(LOAD)}).then(({ loadNative }) => {
          loadNative().localServerOpen(${JSON.stringify(path)}, 1024, (event) => parentPort.postMessage(event.type));
          const socket = connect(${JSON.stringify(path)});
          setInterval(() => socket.write(Buffer.from([0,0,0,0,1,0x50,0,0,0,0,0,0,0,0,0,0])), 1);
        });\`;
      for (let turn = 0; turn < 5; ++turn) {
        const worker = new Worker(code, { eval: true, execArgv: [] });
        await new Promise((resolve) => worker.on('message', (type) => type === 'frame' && resolve()));
        await worker.terminate();
        if (existsSync(${JSON.stringify(path)})) process.exit(9);
      }`;
    expect(await exitOf(node(script))).toBe(0);
  });
});

describe('shared memory', () => {
  it('segmentAbort raises the abort flag once', () => {
    const segment = native.segmentCreate(65536);
    const raise = (offset: number) => native.segmentAbort(segment, offset, 1024, 4, 2, 6, 'rank 2 died');
    expect(raise(0)).toBe(true);
    expect(raise(0)).toBe(false);
    expect(() => raise(65536)).toThrow('abortOffset is not an aligned place in the segment');
    expect(() => raise(8)).toThrow('abortOffset is not an aligned place in the segment');
    native.close(segment);
    expect(() => raise(0)).toThrow('segment was closed before');
    expect(() => native.close(segment)).toThrow('handle was closed before');
  });

  it('a telemetry page stays readable after its handle is closed', () => {
    const { handle, view } = native.telemetryCreate();
    expect(view.length).toBe(8192);
    native.close(handle);
    view[17] = 4;
    expect(view[17]).toBe(4);
  });

  it('segmentCreate and sealedMemory reject invalid arguments', () => {
    expect(() => native.segmentCreate(2 ** 60)).toThrow(/bytes is not a whole number in range/);
    expect(() => callWith('sealedMemory', null)).toThrow('bytes is not a typed array or DataView');
  });
});
