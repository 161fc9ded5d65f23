/** Stacks of many ranks as one tree: what they have in common is one line, as in LLNL's STAT. */
import type { StackFrame } from '../../control/messages/stack.ts';
import { frameText } from './frame-text.ts';
import { ranges } from './ranges.ts';

export interface TreeStack {
  readonly rank: number;
  /** The innermost first. */
  readonly frames: readonly StackFrame[];
}

interface Node {
  readonly text: string;
  readonly ranks: Set<number>;
  readonly children: Map<string, Node>;
}

/** Before the columns of counts and ranks. */
const MIN_WIDTH = 24;
const MAX_RANKS = 24;

/** The outermost frames come first; a line has a frame, the number of ranks in it, and these. */
export function stackTree(stacks: readonly TreeStack[], columns: number): string[] {
  const root: Node = { text: '', ranks: new Set(), children: new Map() };
  for (const { rank, frames } of stacks) {
    let node = root;
    for (const frame of frames.toReversed()) {
      const text = frameText(frame);
      const child = node.children.get(text) ?? { text, ranks: new Set<number>(), children: new Map<string, Node>() };
      node.children.set(text, child);
      child.ranks.add(rank);
      node = child;
    }
  }
  return lines(root, columns);
}

interface Line {
  readonly text: string;
  readonly ranks: ReadonlySet<number>;
}

function lines(root: Node, columns: number): string[] {
  const rows: Line[] = [];
  const add = (node: Node, indent: string): void => {
    const children = [...node.children.values()].toSorted((one, other) => other.ranks.size - one.ranks.size);
    for (const [index, child] of children.entries()) {
      const isLast = index === children.length - 1;
      // A frame that calls one other stands above it; only branches move to the right.
      const isBranch = children.length > 1;
      rows.push({ text: `${indent}${isBranch ? (isLast ? '`-' : '|-') : ''}${child.text}`, ranks: child.ranks });
      add(child, isBranch ? `${indent}${isLast ? '  ' : '| '}` : indent);
    }
  };
  add(root, '');
  const described = rows.map(({ text, ranks }) => {
    const list = ranges([...ranks].toSorted((one, other) => one - other));
    return {
      text,
      count: `${ranks.size}`,
      list: list.length > MAX_RANKS ? `${list.slice(0, MAX_RANKS - 3)}...` : list,
    };
  });
  const counts = Math.max(0, ...described.map(({ count }) => count.length));
  const lists = Math.max(0, ...described.map(({ list }) => list.length));
  const longest = Math.max(0, ...described.map(({ text }) => text.length));
  const width = Math.min(longest, Math.max(MIN_WIDTH, columns - counts - lists - 4));
  return described.map(({ text, count, list }) => {
    return `${shortened(text, width).padEnd(width)}  ${count.padStart(counts)}  ${list}`;
  });
}

/** The end of a frame's text says where it is; the beginning, what it is. */
function shortened(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 3) / 2);
  return `${text.slice(0, width - 3 - tail)}...${text.slice(text.length - tail)}`;
}
