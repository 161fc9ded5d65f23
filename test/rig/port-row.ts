/** Free TCP ports in a row, for tests of --port-range. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { PortRange } from '../../control/port-range.ts';

/** Below the ports that the system chooses by itself; test processes begin at different ones. */
const FIRST = 10_000;
const PORTS = 20_000;
const APART = 64;

export async function freeRow(count: number): Promise<PortRange> {
  for (let step = process.pid; ; step += 1) {
    const first = FIRST + ((step * APART) % PORTS);
    if (await isFree(first, count)) return { first, last: first + count - 1 };
  }
}

export function portOf(server: Server): number {
  const address = server.address();
  return isTcp(address) ? address.port : 0;
}

async function isFree(first: number, count: number): Promise<boolean> {
  const servers: Server[] = [];
  try {
    for (let port = first; port < first + count; port += 1) {
      const server = createServer();
      servers.push(server);
      server.listen(port);
      await once(server, 'listening');
    }
    return true;
  } catch {
    return false;
  } finally {
    await Promise.all(servers.filter((server) => server.listening).map((server) => once(server.close(), 'close')));
  }
}

function isTcp(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
