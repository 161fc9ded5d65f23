/**
 * Detects from /proc/net/tcp (proc(5)) whether the other end of a TCP connection still acknowledges. While ^Z suspends the job the launcher
 * sends no heartbeats, but its kernel acknowledges ours. Without acknowledgements the launcher's host, or the network path to it, is gone.
 */
import { readFileSync } from 'node:fs';

export interface TcpConnection {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** Connection of sshd, from SSH_CONNECTION; null if sshd did not start this process. */
export function sshConnection(environment: NodeJS.ProcessEnv): TcpConnection | null {
  const [remoteAddress, remotePort, localAddress, localPort] = (environment['SSH_CONNECTION'] ?? '').split(' ');
  if (remoteAddress === undefined || localAddress === undefined || localPort === undefined) return null;
  return { localAddress, localPort: Number(localPort), remoteAddress, remotePort: Number(remotePort) };
}

interface TcpSilenceOptions {
  readonly connection: TcpConnection;
  /** Between looks; something is sent in between. */
  readonly everyMs: number;
  readonly leaseMs: number;
  readonly onSilent: (silentMs: number) => void;
  /** For tests. */
  readonly table?: () => string;
}

export class TcpSilence {
  readonly #options: TcpSilenceOptions;
  #timer: NodeJS.Timeout | null = null;
  #silentTicks = 0;

  constructor(options: TcpSilenceOptions) {
    this.#options = options;
  }

  watch(): void {
    this.#silentTicks = 0;
    this.#timer ??= setInterval(() => this.tick(), this.#options.everyMs);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** The timer's work; tests call it themselves. */
  tick(): void {
    const { everyMs, leaseMs, onSilent, connection, table = readTables } = this.#options;
    this.#silentTicks = isUnacknowledged(table(), connection) ? this.#silentTicks + 1 : 0;
    const silentMs = this.#silentTicks * everyMs;
    if (silentMs <= leaseMs) return;
    this.stop();
    onSilent(silentMs);
  }
}

/** Timers of proc(5)'s column "tr": retransmission, and probes of a closed window or of a packet that this host could not send. */
const RETRANSMITS = '01';
const PROBES = '04';

/**
 * True if unacknowledged bytes were retransmitted, or probes went unanswered. An answer to a probe (a closed window) resets their number to 0.
 * False also if the table lacks the connection, because its state is unknown then.
 */
function isUnacknowledged(table: string, connection: TcpConnection): boolean {
  const locals = endings(connection.localAddress, connection.localPort);
  const remotes = endings(connection.remoteAddress, connection.remotePort);
  for (const line of table.split('\n')) {
    const [, local = '', remote = '', , queues = '', timer = '', again = '', , probes = ''] = line.trim().split(/\s+/);
    if (!locals.includes(local) || !remotes.includes(remote)) continue;
    const unanswered = timer.startsWith(RETRANSMITS)
      ? Number.parseInt(again, 16)
      : timer.startsWith(PROBES)
        ? Number(probes)
        : 0;
    return Number.parseInt(queues, 16) > 0 && unanswered > 0;
  }
  return false;
}

/** An address and port as the table has them: words of 32 bits, each little-endian. An IPv4 address may be mapped into IPv6. */
function endings(address: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  if (!address.includes(':')) {
    const word = hexadecimal(address.split('.').map(Number).toReversed());
    return [`${word}${suffix}`, `0000000000000000FFFF0000${word}${suffix}`];
  }
  const plain = address.replace(/%.*$/, ''); // a link-local one has its interface behind it
  const bytes = bytesOfIPv6(plain);
  const words = [0, 4, 8, 12].map((at) => hexadecimal(bytes.slice(at, at + 4).toReversed()));
  return [`${words.join('')}${suffix}`];
}

function bytesOfIPv6(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const [first, last] = [groupsOf(head), groupsOf(tail ?? '')];
  const between = tail === undefined ? [] : Array.from({ length: 8 - first.length - last.length }, () => 0);
  return [...first, ...between, ...last].flatMap((group) => [group >> 8, group & 0xff]);
}

/** Of 16 bits each. */
function groupsOf(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => (group.includes('.') ? pairs(group) : [Number.parseInt(group, 16)]));
}

/** The two groups of 16 bits that an IPv4 address at the end of an IPv6 address stands for. */
function pairs(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

function hexadecimal(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('');
}

function readTables(): string {
  return ['/proc/net/tcp', '/proc/net/tcp6'].map(read).join('\n');
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // a kernel without IPv6
  }
}
