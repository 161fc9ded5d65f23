import type { StackFrame } from '../../control/messages/stack.ts';
import type { HangStack, Verdict } from '../model/hang.ts';
import { shortFrameText } from '../text/frame-text.ts';
import { firstOfRanges } from '../text/ranges.ts';

/** Stacks in one verdict's text. */
const MAX_STACKS = 3;
const MAX_FRAMES = 4;
const MAX_RANKS = 4096;

/** Where the blamed ranks are: "rank 3, main thread: read ← next loader.py:88 ← train train.py:214"; of no blame, where all are. */
export function hangStackLines({ blamed, stacks }: Pick<Verdict, 'blamed' | 'stacks'>): string[] {
  const guilty = new Set(blamed.flatMap(({ ranks }) => firstOfRanges(ranks, MAX_RANKS)));
  const telling = stacks.filter(({ ranks }) => firstOfRanges(ranks, MAX_RANKS).some((rank) => guilty.has(rank)));
  return (guilty.size === 0 ? stacks : telling).slice(0, MAX_STACKS).map(stackLine);
}

function stackLine({ ranks, thread, frames }: HangStack): string {
  const who = /[-,]/u.test(ranks) ? `ranks ${ranks}` : `rank ${ranks}`;
  return `${who}, ${thread}: ${tellingFrames(frames).map(shortFrameText).join(' ← ')}`;
}

/** The call that it is in, and the lines of the program that lead there; of native programs the innermost functions. */
function tellingFrames(frames: readonly StackFrame[]): StackFrame[] {
  const named = frames.filter((frame) => frame.function !== null);
  const sources = named.filter((frame) => frame.file !== null);
  if (sources.length === 0) return named.slice(0, MAX_FRAMES);
  const [innermost] = named;
  const isNative = innermost !== undefined && innermost.file === null;
  return isNative ? [innermost, ...sources.slice(0, MAX_FRAMES - 1)] : sources.slice(0, MAX_FRAMES);
}
