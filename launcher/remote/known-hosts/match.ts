/** Which entries of known_hosts speak of a host. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { HostNames } from './entry.ts';

const DEFAULT_PORT = 22;

/** The name under which a host's key is kept: in lower case, with the port where that is not ssh's own. */
export function lookupName(host: string, port: number): string {
  const name = host.toLowerCase();
  return port === DEFAULT_PORT ? name : `[${name}]:${port}`;
}

/** `name` as lookupName gives it. A negated pattern that matches decides against the whole line. */
export function namesMatch(names: HostNames, name: string): boolean {
  if (names.form === 'hashed') {
    const hash = createHmac('sha1', names.salt).update(name).digest();
    return hash.length === names.hash.length && timingSafeEqual(hash, names.hash);
  }
  let matched = false;
  for (const pattern of names.patterns) {
    const negated = pattern.startsWith('!');
    if (!matchesPattern((negated ? pattern.slice(1) : pattern).toLowerCase(), name)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}

/** `*` is any number of characters, `?` one; all others, brackets too, stand for themselves. Linear in time but for the product of the lengths. */
export function matchesPattern(pattern: string, text: string): boolean {
  let [at, position, star, resume] = [0, 0, -1, 0];
  while (position < text.length) {
    const wanted = pattern[at];
    if (wanted === '*') {
      star = at++;
      resume = position;
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[position])) {
      at += 1;
      position += 1;
    } else if (star >= 0) {
      at = star + 1;
      position = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
