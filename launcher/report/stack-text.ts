/** What `ncclrun stack` prints: a tree of the main threads, one of the others, and why a rank has none. */
import { counted } from '../text/counted.ts';
import { rankName } from '../text/rank-name.ts';
import { ranges } from '../text/ranges.ts';
import { stackTree, type TreeStack } from '../text/stack-tree.ts';
import type { HostRankStack, StackReport } from '../model/stack.ts';

const MAX_NAMED = 10;

/** Lines without their ends. */
export function stackText({ ranks, missing }: StackReport, columns: number): string[] {
  const main = treeStacks(ranks, (thread) => thread.isMain);
  const others = treeStacks(ranks, (thread) => !thread.isMain && !thread.isEngine);
  const paragraphs = [
    titledTree(`main ${main.length === 1 ? 'thread' : 'threads'}`, main, columns),
    titledTree('other threads', others, columns),
    [...omissions(ranks), ...problems(ranks), ...missingText(missing)],
  ].filter((lines) => lines.length > 0);
  return paragraphs.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

function titledTree(title: string, stacks: readonly TreeStack[], columns: number): string[] {
  return stacks.length === 0 ? [] : [title, ...stackTree(stacks, columns)];
}

function treeStacks(
  ranks: readonly HostRankStack[],
  isWanted: (thread: HostRankStack['threads'][number]) => boolean,
): TreeStack[] {
  return ranks.flatMap(({ rank, threads }) =>
    threads.filter((one) => isWanted(one) && one.frames.length > 0).map(({ frames }) => ({ rank, frames })),
  );
}

function omissions(ranks: readonly HostRankStack[]): string[] {
  const count = ranks.reduce((sum, { omittedThreads }) => sum + omittedThreads, 0);
  return count === 0 ? [] : [`${counted(count, 'more thread')} not looked at`];
}

/** Ranks with one problem are one line. */
function problems(ranks: readonly HostRankStack[]): string[] {
  const groups = new Map<string, HostRankStack[]>();
  for (const one of ranks) {
    const main = one.threads.find((thread) => thread.isMain)?.problem ?? null;
    const problem = one.problem ?? (main === null ? null : `of its main thread: ${main}`);
    // The sentence may have the number of the process.
    const name = problem?.replaceAll(String(one.pid), 'PID') ?? null;
    if (name !== null) groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return [...groups].flatMap(([problem, group]) => {
    if (group.length <= MAX_NAMED)
      return group.map((one) => `${rankName(one)}: ${problem.replaceAll('PID', String(one.pid))}`);
    return [`${counted(group.length, 'rank')} (${ranges(group.map(({ rank }) => rank))}): ${problem}`];
  });
}

function missingText(missing: string): string[] {
  return missing === '' ? [] : [`no answer came from the hosts of ranks ${missing}`];
}
