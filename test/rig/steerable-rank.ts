/** The program of a steerable rank (steering.ts): connects to the socket named by STEERING and carries out orders, one line each. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import type { Communicator } from 'ncclrun';
import { LineSplitter } from './lines.ts';
import type { Order } from './steering.ts';
import { messageOf } from '../../control/message-of.ts';

const socket = connect(process.env['STEERING'] ?? '');
let communicator: Communicator | null = null;
let splitOff: Communicator | null = null;

function comm(): Communicator {
  if (communicator === null) throw new Error('init comes first');
  return communicator;
}

function write(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => stream.write(text, () => resolve()));
}

/** Starts `sleep` in one of the ways in which processes get away from those who started them; resolves when it runs. */
async function spawnHidden(how: 'child' | 'setsid' | 'double-fork' | 'setsid-twice'): Promise<void> {
  const forever = 'echo there; exec sleep 100000';
  const script = {
    child: forever,
    setsid: `exec setsid sh -c '${forever}'`,
    'double-fork': `(trap "" TERM INT HUP; sh -c '${forever}' &) & wait`,
    'setsid-twice': `setsid sh -c "setsid sh -c '${forever}' & wait"`,
  }[how];
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  child.unref();
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'print':
      return write(order.stream === 'stdout' ? process.stdout : process.stderr, order.text);
    case 'exit':
      return process.exit(order.code);
    case 'kill':
      return process.kill(process.pid, order.signal);
    case 'ignore':
      for (const signal of order.signals) process.on(signal, () => {});
      return null;
    case 'awaitSignal': {
      const arrived = once(process, order.signal);
      await write(process.stderr, `rank waits for ${order.signal}\n`);
      await arrived;
      return order.signal;
    }
    case 'spawn':
      return spawnHidden(order.how);
    case 'readStdin':
      return readStdin();
    case 'environment':
      return process.env[order.name] ?? null;
    case 'init': {
      const { init } = await import('ncclrun');
      communicator = await init();
      const { rank, size, localRank, localSize, hosts } = communicator;
      return `${rank}/${size} ${localRank}/${localSize} ${hosts.map(({ name }) => name).join(',')}`;
    }
    case 'allReduce':
      return [...(await comm().allReduce(Float32Array.from(order.values)))];
    case 'send':
      return comm().send(Float32Array.from(order.values), order.to);
    case 'receive': {
      const values = new Float32Array(order.count);
      await comm().recv(values, order.from);
      return [...values];
    }
    case 'barrier':
      return comm().barrier();
    case 'split':
      splitOff = await comm().split(0);
      return null;
    case 'allReduceInSplit':
      if (splitOff === null) throw new Error('split comes first');
      return [...(await splitOff.allReduce(Float32Array.from(order.values)))];
    case 'abort':
      return comm().abort('the test says so');
    case 'close':
      return comm()[Symbol.asyncDispose]();
    default:
      return order satisfies never;
  }
}

function isRequest(message: unknown): message is { id: number; order: Order } {
  return typeof message === 'object' && message !== null && 'order' in message;
}

async function answer(line: string): Promise<void> {
  const message: unknown = JSON.parse(line);
  if (!isRequest(message)) return;
  const { id, order } = message;
  try {
    const value = await obey(order);
    socket.write(`${JSON.stringify({ id, value: value ?? null })}\n`);
  } catch (error) {
    socket.write(`${JSON.stringify({ id, error: messageOf(error) })}\n`);
  }
}

const splitter = new LineSplitter();
socket.on('data', (bytes) => {
  for (const line of splitter.push(Buffer.from(bytes))) void answer(line);
});
socket.on('close', () => process.exit(0)); // the test is over
await once(socket, 'connect');
const rank = Number(process.env['RANK'] ?? 0);
const greeting = {
  rank,
  pid: process.pid,
  host: hostname(),
  argv: process.argv.slice(2),
  workingDirectory: process.cwd(),
};
socket.write(`${JSON.stringify(greeting)}\n`);
