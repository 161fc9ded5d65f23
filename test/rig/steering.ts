/**
 * A rank that does what a test tells it, when the test tells it: no sleeps, no races. The program is steerable-rank.ts; the two talk over a Unix
 * socket in a directory that every host of a cluster sees.
 *
 *     await using steering = await Steering.open();
 *     await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
 *     const rank = await steering.rank(1);
 *     await rank.exit(3);
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type Server, type Socket, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LineSplitter } from './lines.ts';
import { environmentOf, innerPid, withEnvironment } from './processes.ts';

/** What a steerable rank can be told; steerable-rank.ts carries it out. */
export type Order =
  | { readonly do: 'print'; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly do: 'exit'; readonly code: number }
  | { readonly do: 'kill'; readonly signal: NodeJS.Signals }
  | { readonly do: 'ignore'; readonly signals: readonly NodeJS.Signals[] }
  | { readonly do: 'awaitSignal'; readonly signal: NodeJS.Signals }
  | { readonly do: 'spawn'; readonly how: 'child' | 'setsid' | 'double-fork' | 'setsid-twice' }
  | { readonly do: 'readStdin' }
  | { readonly do: 'environment'; readonly name: string }
  | { readonly do: 'init' }
  | { readonly do: 'allReduce'; readonly values: readonly number[] }
  | { readonly do: 'send'; readonly to: number; readonly values: readonly number[] }
  | { readonly do: 'receive'; readonly from: number; readonly count: number }
  | { readonly do: 'barrier' }
  /** Makes another communicator of all ranks. */
  | { readonly do: 'split' }
  /** In the communicator that `split` made. */
  | { readonly do: 'allReduceInSplit'; readonly values: readonly number[] }
  | { readonly do: 'abort' }
  | { readonly do: 'close' };

/** The first line of a rank. */
export interface RankGreeting {
  readonly rank: number;
  /** As its own pid namespace counts. */
  readonly pid: number;
  readonly host: string;
  readonly argv: readonly string[];
  readonly workingDirectory: string;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export class SteerableRank implements RankGreeting {
  readonly rank: number;
  readonly pid: number;
  readonly host: string;
  readonly argv: readonly string[];
  readonly workingDirectory: string;
  /** Resolves when the rank's process is gone (or closed its socket, which it never does by itself). */
  readonly gone: Promise<void>;
  #socket: Socket;
  #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #nextId = 0;
  #path: string;

  constructor(socket: Socket, greeting: RankGreeting, path: string) {
    ({
      rank: this.rank,
      pid: this.pid,
      host: this.host,
      argv: this.argv,
      workingDirectory: this.workingDirectory,
    } = greeting);
    this.#socket = socket;
    this.#path = path;
    this.gone = this.#untilGone();
  }

  async #untilGone(): Promise<void> {
    // A killed rank resets the connection; `once` would take that for its own failure.
    await new Promise((resolve) => this.#socket.once('close', resolve));
    for (const { reject } of this.#waiting.values()) reject(new Error(`rank ${this.rank} is gone`));
  }

  answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.error === undefined) waiting?.resolve(answer.value);
    else waiting?.reject(new Error(answer.error));
  }

  /** Gives an order; resolves with its value, rejects with the rank's error or when the rank is gone. */
  tell(order: Order): Promise<unknown> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    this.#socket.write(`${JSON.stringify({ id, order })}\n`);
    return promise;
  }

  print(text: string, stream: 'stdout' | 'stderr' = 'stdout'): Promise<unknown> {
    return this.tell({ do: 'print', stream, text });
  }
  /** Ends the rank's process; resolves when it is gone. */
  async exit(code: number): Promise<void> {
    this.tell({ do: 'exit', code }).catch(() => {});
    await this.gone;
  }
  /** The rank sends itself a signal; resolves when it is gone. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    this.tell({ do: 'kill', signal }).catch(() => {});
    await this.gone;
  }
  /** Starts a process that runs for ever, hidden in the way given. */
  async spawn(how: 'child' | 'setsid' | 'double-fork' | 'setsid-twice'): Promise<void> {
    await this.tell({ do: 'spawn', how });
  }
  async environment(name: string): Promise<string | null> {
    const value = await this.tell({ do: 'environment', name });
    return typeof value === 'string' ? value : null;
  }
  /** Joins the communicator of all ranks; resolves with `rank/size local/localSize hosts`. */
  async init(): Promise<string> {
    return String(await this.tell({ do: 'init' }));
  }
  async allReduce(...values: readonly number[]): Promise<readonly number[]> {
    return numbers(await this.tell({ do: 'allReduce', values }));
  }
  async receive(from: number, count: number): Promise<readonly number[]> {
    return numbers(await this.tell({ do: 'receive', from, count }));
  }

  /** The pid by which this machine knows the rank, whatever namespace it is in. */
  get machinePid(): number {
    const mine = withEnvironment(`STEERING=${this.#path}`).find(
      (entry) => innerPid(entry.pid) === this.pid && environmentOf(entry.pid, 'RANK') === String(this.rank),
    );
    if (mine === undefined) throw new Error(`no process of rank ${this.rank}`);
    return mine.pid;
  }
}

export class Steering implements AsyncDisposable {
  readonly path: string;
  /** Options that tell the ranks where to connect; they stand before the program. */
  readonly options: readonly string[];
  readonly program = join(dirname(fileURLToPath(import.meta.url)), 'steerable-rank.ts');
  #server: Server;
  #directory: string;
  #ranks = new Map<number, PromiseWithResolvers<SteerableRank>>();
  #sockets = new Set<Socket>();

  private constructor(directory: string, path: string, server: Server) {
    this.#directory = directory;
    this.path = path;
    this.options = ['-x', `STEERING=${path}`];
    this.#server = server;
    server.on('connection', (socket) => this.#connected(socket));
  }

  static async open(): Promise<Steering> {
    const directory = await mkdtemp('/var/tmp/ncclrun-steering-');
    const path = join(directory, 'socket');
    const server = createServer();
    server.listen(path);
    await once(server, 'listening');
    return new Steering(directory, path, server);
  }

  /** Resolves when this rank has started. */
  rank(rank: number): Promise<SteerableRank> {
    return this.#slot(rank).promise;
  }

  /** Resolves when ranks 0…count-1 have started. */
  ranks(count: number): Promise<SteerableRank[]> {
    return Promise.all(Array.from({ length: count }, (_, rank) => this.rank(rank)));
  }

  #slot(rank: number): PromiseWithResolvers<SteerableRank> {
    const known = this.#ranks.get(rank);
    if (known !== undefined) return known;
    const fresh = Promise.withResolvers<SteerableRank>();
    this.#ranks.set(rank, fresh);
    return fresh;
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    const splitter = new LineSplitter();
    let rank: SteerableRank | null = null;
    socket.on('error', () => {}); // a killed rank resets; `close` follows
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (bytes) => {
      for (const line of splitter.push(Buffer.from(bytes))) {
        const message: unknown = JSON.parse(line);
        if (rank !== null && isAnswer(message)) rank.answered(message);
        else if (isGreeting(message)) {
          rank = new SteerableRank(socket, message, this.path);
          this.#slot(message.rank).resolve(rank);
        }
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
    await rm(this.#directory, { recursive: true, force: true });
  }
}

function numbers(value: unknown): readonly number[] {
  if (!Array.isArray(value)) throw new Error(`no list of numbers: ${JSON.stringify(value)}`);
  return value.map(Number);
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'id' in message;
}

function isGreeting(message: unknown): message is RankGreeting {
  return typeof message === 'object' && message !== null && 'rank' in message && 'pid' in message;
}
