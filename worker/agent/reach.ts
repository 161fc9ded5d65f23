/** Finds out by which addresses other hosts of the job are reached, and lets them find out ours. Loaded only where somebody asks. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type TcpNetConnectOpts } from 'node:net';
import {
  limitOf,
  signOf,
  type ReachAnswer,
  type ReachQuestion,
  type ReachTarget,
} from '../../control/messages/reach.ts';
import { listenWithin, type PortRange } from '../../control/port-range.ts';

/** Maximum of simultaneous connections; each lasts only until the greeting is sent. */
const MAX_CONNECTIONS = 256;

export class ReachProbe {
  readonly #jobId: string;
  readonly #hostName: string;
  readonly #portRange: PortRange | null;
  #server: Server | null = null;

  constructor(jobId: string, hostName: string, portRange: PortRange | null) {
    this.#portRange = portRange;
    this.#jobId = jobId;
    this.#hostName = hostName;
  }

  /** Rejects with the system's error where nothing can listen. */
  async answer(question: ReachQuestion): Promise<ReachAnswer> {
    if (question.type === 'listen') return { type: 'listening', port: await this.#listen() };
    return { type: 'reached', found: await Promise.all(question.targets.map((target) => this.#probe(target))) };
  }

  /** Stops listening. */
  close(): void {
    this.#server?.close();
  }

  async #listen(): Promise<number> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined); // a port scan
      socket.end(signOf(this.#jobId, this.#hostName), () => socket.destroy()); // A client that stays connected must not hold a descriptor of ours.
    });
    server.maxConnections = MAX_CONNECTIONS;
    this.#server = server;
    await listenWithin(server, {}, this.#portRange);
    const address = server.address();
    return isTcp(address) ? address.port : 0;
  }

  /** Returns the addresses that lead to the target host. */
  async #probe({ host, addresses, sources, port, thorough }: ReachTarget): Promise<string[]> {
    const sign = signOf(this.#jobId, host);
    const enough = new AbortController();
    const limit = AbortSignal.any([enough.signal, AbortSignal.timeout(limitOf(thorough))]);
    const answers = await Promise.all(
      addresses.map(async (address, index) => {
        const leads = (await readGreeting({ host: address, port, localAddress: sources?.[index] }, limit)) === sign;
        if (leads && index === 0 && !thorough) enough.abort();
        return leads ? [address] : [];
      }),
    );
    return answers.flat();
  }
}

/** Greeting at the address; null without an answer in time. */
async function readGreeting(at: TcpNetConnectOpts, signal: AbortSignal): Promise<string | null> {
  const socket = connect({ ...at, signal });
  let greeting = '';
  socket.setEncoding('latin1');
  socket.on('data', (text) => (greeting = (greeting + text).slice(0, 64)));
  try {
    await once(socket, 'end', { signal });
    return greeting;
  } catch {
    return null;
  } finally {
    socket.on('error', () => undefined);
    socket.destroy();
  }
}

function isTcp(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
