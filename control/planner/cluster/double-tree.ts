/**
 * Two binary trees over the same hosts, such that none is inside both (but for one of an odd number): each carries half of the data, and every host
 * sends about as much as it receives. P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
 * Parallel Computing 35 (2009).
 */
interface TreePosition {
  /** -1: the root. */
  readonly parent: number;
  /** Which of the parent's children it is; of the root 0. */
  readonly childNumber: 0 | 1;
  /** The two have numbers of their own also where there is only one. */
  readonly children: readonly TreeChild[];
}

interface TreeChild {
  readonly position: number;
  readonly number: 0 | 1;
}

/**
 * Neighbours of `position` among `count` in the first tree (`which` 0) or the second. Shape of the first, of 8:
 *
 *     0 ────────── 4
 *              ┌───┴───┐
 *              2       6
 *            ┌─┴─┐   ┌─┴─┐
 *            1   3   5   7
 */
export function positionInDoubleTree(count: number, position: number, which: 0 | 1): TreePosition {
  if (which === 0) return positionInTree(count, position);
  // The second is the first with all positions moved by one, or, of an even number, seen in a mirror.
  const isOdd = count % 2 === 1;
  const there = (at: number): number => (isOdd ? (at + count - 1) % count : count - 1 - at);
  const back = (at: number): number => (isOdd ? (at + 1) % count : count - 1 - at);
  const { parent, children, childNumber } = positionInTree(count, there(position));
  return {
    parent: parent === -1 ? -1 : back(parent),
    childNumber,
    children: children.map((child) => ({ position: back(child.position), number: child.number })),
  };
}

function positionInTree(count: number, position: number): TreePosition {
  if (position === 0) {
    const below = count > 1 ? highestBit(count - 1) : 0;
    return { parent: -1, childNumber: 0, children: below === 0 ? [] : [{ position: below, number: 1 }] };
  }
  const bit = position & -position;
  const above = (position ^ bit) | (bit << 1);
  const parent = above < count ? above : position ^ bit;
  const children: TreeChild[] = [];
  if (bit > 1) {
    children.push({ position: position - (bit >> 1), number: 0 });
    // Behind the end of the last, incomplete part of the tree the next smaller part replaces it.
    for (let half = bit >> 1; half > 0; half >>= 1) {
      if (position + half >= count) continue;
      children.push({ position: position + half, number: 1 });
      break;
    }
  }
  return { parent, children, childNumber: position < parent ? 0 : 1 };
}

function highestBit(value: number): number {
  return 1 << (31 - Math.clz32(value));
}
