/** --port-range: the TCP ports on which a job listens. As native/base/port_range.h. */
import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';
import { hostname } from 'node:os';

/** Both ends belong to it. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const FIRST_UNPRIVILEGED = 1024;
export const LAST_PORT = 65_535;

/** `20000-20999`, or with a colon, as Hydra writes it. Null: the text is no range of unprivileged ports. */
export function parsePortRange(text: string): PortRange | null {
  const [, first, last] = /^([0-9]{1,5})[-:]([0-9]{1,5})$/u.exec(text) ?? [];
  const range = { first: Number(first), last: Number(last) };
  return range.first >= FIRST_UNPRIVILEGED && range.first <= range.last && range.last <= LAST_PORT ? range : null;
}

/** What is wanted instead of a text that is no range. */
export function wantedPortRange(text: string): string {
  const [, first, last] = /^([0-9]+)[-:]([0-9]+)$/u.exec(text) ?? [];
  const lower = Math.min(Number(first), Number(last));
  if (Number(first) > Number(last) && lower >= FIRST_UNPRIVILEGED) return `${last}-${first}, the lower port first`;
  if (lower < FIRST_UNPRIVILEGED) return `a range of ports from ${FIRST_UNPRIVILEGED} on`;
  return `LO-HI, ports from ${FIRST_UNPRIVILEGED} to ${LAST_PORT} such as 20000-20999`;
}

export function portRangeText({ first, last }: PortRange): string {
  return `${first}-${last}`;
}

export function portsIn({ first, last }: PortRange): number {
  return last - first + 1;
}

/**
 * Listens on a port of the range that nobody has, or on one that the system chooses. Processes of a host begin at different ports. Rejects with a
 * sentence if every port is in use, else with the system's error.
 */
export async function listenWithin(server: Server, options: ListenOptions, range: PortRange | null): Promise<void> {
  if (range === null) return await listening(server, { ...options, port: 0 });
  const size = portsIn(range);
  for (let step = 0; step < size; step += 1) {
    const port = range.first + ((process.pid + step) % size);
    try {
      return await listening(server, { ...options, port });
    } catch (error) {
      if (!isInUse(error)) throw error;
    }
  }
  throw new Error(
    `every port of ${portRangeText(range)} (--port-range) is in use on ${hostname()}; widen the range, or end what listens there (ss -ltnp shows it)`,
  );
}

async function listening(server: Server, options: ListenOptions): Promise<void> {
  server.listen(options);
  await once(server, 'listening');
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
