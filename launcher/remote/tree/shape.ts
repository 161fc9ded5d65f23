/**
 * Who reaches whom. The first `radix` hosts are reached by the launcher, the next radix² by way of these, and so on; neighbours in the list go by
 * different hosts, so that few hosts beyond the first ones are reached at once.
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
