/**
 * One host's part of what doctor asks all hosts at once. Each listens on the same port and connects to the others; the first one has written a file
 * into its working directory before it listens, and removes it once the others have looked for it.
 */
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileOf, type TogetherAnswer, type TogetherOrder } from '../../control/together.ts';

/** A network file system shows a new file within this time. */
const FILE_MS = 3000;
/** Until another host must have started its process too. */
const REACH_MS = 6000;
const CONNECT_MS = 2000;
const PAUSE_MS = 100;
/** Each host tries so many that follow it in the list, which goes round. */
const MAX_PEERS = 64;
const MAX_NAME = 1000;

type Host = TogetherOrder['hosts'][number];
type Unreached = TogetherAnswer['unreached'][number];

interface Place {
  readonly machine: string;
  readonly directory: string;
}

export async function lookTogether(order: TogetherOrder, { machine, directory }: Place): Promise<TogetherAnswer> {
  const index = order.hosts.findIndex((host) => host.machine === machine);
  const self = order.hosts[index];
  if (self === undefined) return { file: 'unknown', listened: false, unreached: [] };
  const own = index === 0 ? new OwnFile(join(directory, fileOf(order))) : null;
  const server = new Greeter(order.sign);
  const looked = Promise.withResolvers<void>();
  try {
    const listened = await server.listen(order.port);
    const tries = peersOf(order.hosts, index).map((host) => ({
      host,
      tried: reach(host, self.name, order, looked.promise),
    }));
    const first = tries.find(({ host }) => host === order.hosts[0]);
    const file = own === null ? await look(directory, fileOf(order), first?.tried) : own.state;
    looked.resolve();
    const unreached = (await Promise.all(tries.map(({ tried }) => tried))).filter((one) => one !== null);
    await server.served(order.hosts.filter((_, other) => peersOf(order.hosts, other).includes(self)));
    return { file, listened, unreached };
  } finally {
    looked.resolve();
    server.close();
    own?.remove();
  }
}

/** Those that follow in the list, which goes round, and the first one, whose file everybody looks for. */
function peersOf(hosts: readonly Host[], index: number): Host[] {
  const following = [...hosts.slice(index + 1), ...hosts.slice(0, index)].slice(0, MAX_PEERS);
  return [...new Set([...following, ...(index === 0 ? [] : hosts.slice(0, 1))])];
}

/** Looks only after the first host has been reached: its file is there by then. */
async function look(
  directory: string,
  name: string,
  first: Promise<Unreached | null> | undefined,
): Promise<TogetherAnswer['file']> {
  const isReached = first !== undefined && (await first) === null;
  for (const end = performance.now() + FILE_MS; ; await sleep(PAUSE_MS)) {
    // A look at the directory asks the file server; a look for the file may be answered from memory.
    if (namesIn(directory).includes(name)) return 'seen';
    if (!isReached || performance.now() > end) return isReached ? 'absent' : 'unknown';
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Null: it was reached at its best address. Our name, at the end, says that we need that host no more. */
async function reach(
  { name, addresses }: Host,
  ownName: string,
  order: TogetherOrder,
  looked: Promise<void>,
): Promise<Unreached | null> {
  const [address = ''] = addresses;
  if (address === '') return { host: name, address, error: 'it has no address' };
  let error = '';
  for (const end = performance.now() + REACH_MS; performance.now() < end; await sleep(PAUSE_MS)) {
    const found = await greetingOf(address, order.port);
    if (found.greeting === order.sign) {
      void looked.then(() => found.socket.end(ownName));
      return null;
    }
    found.socket.destroy();
    error = found.error;
  }
  return { host: name, address, error };
}

interface Greeting {
  readonly socket: Socket;
  readonly greeting: string;
  readonly error: string;
}

async function greetingOf(host: string, port: number): Promise<Greeting> {
  const socket = connect({ host, port });
  const signal = AbortSignal.timeout(CONNECT_MS);
  try {
    const [bytes] = await once(socket, 'data', { signal });
    socket.on('error', () => undefined); // the other end has left
    return { socket, greeting: String(bytes), error: 'another program answers there' };
  } catch (error) {
    socket.on('error', () => undefined);
    return { socket, greeting: '', error: wordsOf(error) };
  }
}

/** As the system says it. */
const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
};

function wordsOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return causes[code] ?? 'connection timed out';
}

/** Tells every host that connects the sign, and notes those that need this one no more. */
class Greeter {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #served = new Set<string>();

  constructor(sign: string) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined); // the other end has left
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('data', (bytes) => this.#served.add(String(bytes).slice(0, MAX_NAME)));
      socket.write(sign);
    });
  }

  /** False: somebody else has the port. */
  async listen(port: number): Promise<boolean> {
    try {
      this.#server.listen({ port });
      await once(this.#server, 'listening');
      return true;
    } catch {
      return false;
    }
  }

  /** Until these hosts need it no more; one that cannot come is waited for as long as it tries. */
  async served(hosts: readonly Host[]): Promise<void> {
    const end = performance.now() + REACH_MS + FILE_MS;
    const isOver = (): boolean => hosts.every(({ name }) => this.#served.has(name));
    while (this.#server.listening && !isOver() && performance.now() < end) await sleep(PAUSE_MS);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Removed again when the process ends in any way but by SIGKILL. */
class OwnFile {
  readonly state: 'written' | 'unwritable';
  readonly #path: string;
  readonly #leave = (): void => {
    this.remove();
    process.exit(1);
  };

  constructor(path: string) {
    this.#path = path;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, this.#leave);
    this.state = isWritten(path) ? 'written' : 'unwritable';
  }

  remove(): void {
    rmSync(this.#path, { force: true });
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.off(signal, this.#leave);
  }
}

function isWritten(path: string): boolean {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}
