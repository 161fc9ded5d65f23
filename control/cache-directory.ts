/** Where ncclrun keeps what it can make again: copies of itself for other hosts, and what it has measured. */
import { isAbsolute, join } from 'node:path';
import { homeDirectory } from './home-directory.ts';

/**
 * Null for a user without a home directory: nothing is kept. A relative XDG_CACHE_HOME does not count: it would lie in whatever directory the user
 * stands in.
 */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string | null {
  const given = environment['XDG_CACHE_HOME'] ?? '';
  if (isAbsolute(given)) return join(given, 'ncclrun');
  const home = homeDirectory();
  return home === null ? null : join(home, '.cache', 'ncclrun');
}
