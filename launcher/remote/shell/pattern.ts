/** ssh's patterns, of ssh_config and known_hosts (ssh_config(5), "PATTERNS"). */

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

/** A negated pattern that matches decides against the whole list. */
export function matchesList(patterns: readonly string[], text: string): boolean {
  let matched = false;
  for (const pattern of patterns) {
    const negated = pattern.startsWith('!');
    if (!matchesPattern(negated ? pattern.slice(1) : pattern, text)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}
