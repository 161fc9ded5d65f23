/**
 * Shape of the agent tree. The launcher connects to the first `radix` hosts, these to the next radix², and so on. Neighbours in the list have
 * different parents, so that no parent connects to many hosts at once.
 */

/** Where `index` is reached from: another host's index, or null, the launcher. */
export function parentOf(index: number, radix: number): number | null {
  let first = 0;
  let size = radix;
  if (radix === 0 || index < size) return null;
  for (;;) {
    const next = first + size;
    if (index < next + size * radix) return first + ((index - next) % size);
    first = next;
    size *= radix;
  }
}
