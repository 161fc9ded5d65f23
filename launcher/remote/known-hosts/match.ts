/** Which entries of known_hosts speak of a host. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { matchesList } from '../shell/pattern.ts';
import type { HostNames } from './entry.ts';

const DEFAULT_PORT = 22;

/** The name under which a host's key is kept: in lower case, with the port where that is not ssh's own. */
export function lookupName(host: string, port: number): string {
  const name = host.toLowerCase();
  return port === DEFAULT_PORT ? name : `[${name}]:${port}`;
}

/** `name` as lookupName gives it. */
export function namesMatch(names: HostNames, name: string): boolean {
  if (names.form === 'hashed') {
    const hash = createHmac('sha1', names.salt).update(name).digest();
    return hash.length === names.hash.length && timingSafeEqual(hash, names.hash);
  }
  return matchesList(
    names.patterns.map((pattern) => pattern.toLowerCase()),
    name,
  );
}
