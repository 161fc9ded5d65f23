/** Adds stacks to verdicts about hangs: of the blamed ranks, and one of each class of the others. */
import type { StackFrame, ThreadStack } from '../../control/messages/stack.ts';
import type { Hang, HangStack, Verdict } from '../model/hang.ts';
import type { StackReport } from '../model/stack.ts';
import { firstOfRanges, ranges } from '../text/ranges.ts';

/** A verdict does not wait longer for its stacks; they follow as an event of their own. */
const PATIENCE_MS = 1500;
const MAX_BLAMED = 16;
const MAX_STACKS = 64;
const ENGINE = /(?:^|\/)libnccl\.so\.2$/;

interface HangStacksOptions {
  read(this: void, ranks: readonly number[]): Promise<StackReport>;
  /** The verdict, with its stacks if they are there. */
  found(this: void, hang: Hang): void;
  /** The stacks of a verdict that did not wait for them. */
  late(this: void, hang: Hang, stacks: readonly HangStack[]): void;
}

export class HangStacks {
  readonly #options: HangStacksOptions;
  /** Report verdicts whose stacks are still to come. */
  readonly #pending = new Set<() => void>();
  #isClosed = false;

  constructor(options: HangStacksOptions) {
    this.#options = options;
  }

  add(hang: Hang): void {
    const { read, found, late } = this.#options;
    let isReported = false;
    const report = (stacks: readonly HangStack[]): void => {
      isReported = true;
      clearTimeout(timer);
      this.#pending.delete(hurry);
      found({ ...hang, verdict: { ...hang.verdict, stacks } });
    };
    const hurry = (): void => report([]);
    const timer = setTimeout(hurry, PATIENCE_MS);
    this.#pending.add(hurry);
    const take = (stacks: readonly HangStack[]): void => {
      if (!isReported) report(stacks);
      else if (stacks.length > 0 && !this.#isClosed) late(hang, stacks);
    };
    void read(wantedRanks(hang.verdict)).then((answer) => take(hangStacks(answer)));
  }

  /** No rank is left: verdicts are reported with what there is. */
  close(): void {
    this.#isClosed = true;
    for (const hurry of this.#pending) hurry();
  }
}

/** The blamed come first. */
function wantedRanks({ blamed, classes }: Verdict): number[] {
  const guilty = blamed.flatMap(({ ranks }) => firstOfRanges(ranks, MAX_BLAMED)).slice(0, MAX_BLAMED);
  const others = classes.flatMap(({ ranks }) => firstOfRanges(ranks, 1));
  return [...new Set([...guilty, ...others])].slice(0, MAX_STACKS);
}

/** Ranks with equal stacks share one. */
export function hangStacks({ ranks }: StackReport): HangStack[] {
  const found = new Map<string, { readonly ranks: number[]; readonly thread: string; readonly frames: StackFrame[] }>();
  for (const { rank, threads } of ranks) {
    const thread = tellingThread(threads);
    if (thread === undefined || thread.frames.length === 0) continue;
    const name = thread.isMain ? 'main thread' : `thread ${thread.name}`;
    const key = JSON.stringify([name, thread.frames]);
    const known = found.get(key) ?? { ranks: [], thread: name, frames: [...thread.frames] };
    found.set(key, known);
    known.ranks.push(rank);
  }
  return [...found.values()].map(({ ranks: alike, thread, frames }, index) => ({
    id: index + 1,
    ranks: ranges(alike.toSorted((one, other) => one - other)),
    thread,
    frames,
  }));
}

/** The one that has called the engine, else the first. */
function tellingThread(threads: readonly ThreadStack[]): ThreadStack | undefined {
  const callers = threads.filter(({ isEngine }) => !isEngine);
  const inside = callers.find(({ frames }) => frames.some(({ module }) => module !== null && ENGINE.test(module)));
  return inside ?? callers.find(({ isMain }) => isMain) ?? callers[0];
}
