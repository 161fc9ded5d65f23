/** Where ncclrun keeps what it can make again: copies of itself for other hosts, and what it has measured. */
import { homedir } from 'node:os';
import { join } from 'node:path';

export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'ncclrun');
}
