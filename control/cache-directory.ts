/** Where ncclrun keeps what it can make again: copies of itself for other hosts, and what it has measured. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** A relative XDG_CACHE_HOME does not count: it would lie in whatever directory the user stands in. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const base = environment['XDG_CACHE_HOME'] ?? '';
  return join(isAbsolute(base) ? base : join(homedir(), '.cache'), 'ncclrun');
}
