/** Trees of stacks, and what is said where there are none. */
import { describe, expect, it, vi } from 'vitest';
import type { RankStack, StackFrame } from '../../control/messages/stack.ts';
import { StackProblem } from '../../control/messages/stack.ts';
import { HangStacks, hangStacks } from '../../launcher/job/hang-stacks.ts';
import type { Hang, HangStack } from '../../launcher/model/hang.ts';
import type { HostRankStack, StackReport } from '../../launcher/model/stack.ts';
import { hangStackLines } from '../../launcher/report/hang-stack-text.ts';
import { stackText } from '../../launcher/report/stack-text.ts';
import { firstOfRanges } from '../../launcher/text/ranges.ts';
import { stackTree } from '../../launcher/text/stack-tree.ts';
import { reasonOf, stackProblem } from '../../worker/agent/stack-problem.ts';
import { hostileHang } from '../rig/hostile.ts';

const native = (name: string | null, module = '/lib/libc.so.6'): StackFrame => ({
  language: 'native',
  function: name,
  file: null,
  line: null,
  module,
});
const python = (name: string, line: number): StackFrame => ({
  language: 'python',
  function: name,
  file: '/srv/train.py',
  line,
  module: null,
});
const MAIN = [python('train', 214), python('<module>', 300)];
const reduce = [native('poll'), python('all_reduce', 12), ...MAIN];
const load = [native('read'), python('load', 88), ...MAIN];

function stack(rank: number, frames: readonly StackFrame[], fields: Partial<RankStack> = {}): HostRankStack {
  const thread = { thread: 1, name: 'python3', isMain: true, isEngine: false, problem: null, frames, isCut: false };
  return { rank, host: 'node1', pid: 4000 + rank, problem: null, threads: [thread], omittedThreads: 0, ...fields };
}

const report = (ranks: readonly HostRankStack[], missing = ''): StackReport => ({
  schemaVersion: 1,
  takenAt: 0,
  ranks,
  missing,
});

describe('the tree of stacks', () => {
  it('frames that ranks have in common are one line, and branches have their ranks', () => {
    const stacks = [0, 1, 2, 3].map((rank) => ({ rank, frames: rank === 2 ? load : reduce }));
    expect(stackTree(stacks, 80)).toEqual([
      '<module>  train.py:300     4  0-3',
      'train  train.py:214        4  0-3',
      '|-all_reduce  train.py:12  3  0-1,3',
      '| poll  libc.so.6          3  0-1,3',
      '`-load  train.py:88        1  2',
      '  read  libc.so.6          1  2',
    ]);
  });

  it('long names and long lists of ranks are cut to the width', () => {
    const long = native('very::long::'.repeat(20));
    const stacks = Array.from({ length: 40 }, (_, index) => ({ rank: index * 2, frames: [long] }));
    const lines = stackTree(stacks, 80);
    expect(lines[0]).toMatch(/^very::long::.*\.\.\..*libc\.so\.6 {2}40 {2}0,2,4,.*\.\.\.$/);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
  });

  it('ten thousand ranks with two stacks are a few lines', () => {
    const stacks = Array.from({ length: 10_000 }, (_, rank) => ({ rank, frames: rank === 4711 ? load : reduce }));
    expect(stackTree(stacks, 80)).toHaveLength(6);
  });
});

describe('what stack prints', () => {
  it('main threads, other threads and reasons follow each other; threads of the engine are left out', () => {
    const [main] = stack(0, reduce).threads;
    if (main === undefined) throw new Error('it has one');
    const others = [
      { ...main, isMain: false, frames: [python('background', 7)] },
      { ...main, isMain: false, isEngine: true, frames: [native('ppoll')] },
    ];
    const ranks = [
      stack(0, reduce, { threads: [main, ...others], omittedThreads: 3 }),
      stack(1, [], { threads: [], problem: 'process 4001 is traced by process 9: detach that debugger' }),
    ];
    const text = stackText(report(ranks, '5-7'), 80);
    expect(text.filter((line) => line === '' || !line.includes('  '))).toEqual([
      'main thread',
      '',
      'other threads',
      '',
      '3 more threads not looked at',
      'rank 1 on node1 (pid 4001): process 4001 is traced by process 9: detach that debugger',
      'no answer came from the hosts of ranks 5-7',
    ]);
    expect(text.join('\n')).not.toContain('ppoll');
  });

  it.each([
    [1, ['rank 0 on node1 (pid 4000): its process has ended']],
    [11, ['11 ranks (0-10): its process has ended']],
    [20, ['20 ranks (0-19): its process has ended']],
  ])('%i ranks with one reason are one line', (count, expected) => {
    const ranks = Array.from({ length: count }, (_, rank) =>
      stack(rank, [], { threads: [], problem: 'its process has ended' }),
    );
    expect(stackText(report(ranks), 80)).toEqual(expected);
  });

  it('ten ranks with one reason are named one by one, each with its own process', () => {
    const ranks = Array.from({ length: 10 }, (_, rank) =>
      stack(rank, [], { threads: [], problem: `process ${4000 + rank} has ended` }),
    );
    expect(stackText(report(ranks), 80)).toEqual(
      ranks.map(({ rank }) => `rank ${rank} on node1 (pid ${4000 + rank}): process ${4000 + rank} has ended`),
    );
  });

  it('a main thread without a stack has its reason beside the others’ trees', () => {
    const [main] = stack(1, []).threads;
    if (main === undefined) throw new Error('it has one');
    const threads = [
      { ...main, problem: 'it is asleep' },
      { ...main, isMain: false, problem: 'unseen', frames: MAIN },
    ];
    const text = stackText(report([stack(0, MAIN), stack(1, [], { threads, omittedThreads: 1 })]), 80);
    expect(text.filter((line) => line === '' || !line.includes('  '))).toEqual([
      'main thread',
      '',
      'other threads',
      '',
      '1 more thread not looked at',
      'rank 1 on node1 (pid 4001): of its main thread: it is asleep',
    ]);
  });

  it('notes without a tree, and a tree without notes, have no empty line', () => {
    expect(stackText(report([], '3'), 80)).toEqual(['no answer came from the hosts of ranks 3']);
    expect(stackText(report([stack(0, MAIN)]), 80)).not.toContain('');
    expect(stackText(report([stack(0, MAIN), stack(1, MAIN)], '3'), 80)).toEqual([
      'main threads',
      expect.stringContaining('<module>'),
      expect.stringContaining('train'),
      '',
      'no answer came from the hosts of ranks 3',
    ]);
  });
});

describe('the reasons why there is no stack', () => {
  it('every problem but none has a sentence', () => {
    for (const problem of Object.values(StackProblem)) {
      const sentence = stackProblem({ problem, detail: 7, pid: 4711 });
      if (problem === StackProblem.none) expect(sentence).toBeNull();
      else expect(sentence).toMatch(/^[a-z]/);
    }
  });

  it('the ptrace_scope of the system is named', () => {
    expect(reasonOf(3, 1)).toContain('ptrace_scope is 3');
    expect(reasonOf(2, 1)).toContain('ptrace_scope is 2');
    expect(reasonOf(null, 1)).toContain('errno 1');
    expect(reasonOf(1, 1)).toBe(reasonOf(null, 1));
  });
});

const hang = (blamed: string, classes: readonly string[]): Hang => ({
  ...hostileHang,
  verdict: {
    ...hostileHang.verdict,
    blamed: hostileHang.verdict.blamed.map((one) => ({ ...one, ranks: blamed })),
    classes: classes.map((ranks) => ({ ranks, count: 1, where: 'inside', communicator: null, operation: null })),
    stacks: [],
  },
});

/** What is asked and reported, and the answer to the first question. */
function reading() {
  const asked: (readonly number[])[] = [];
  const answer = Promise.withResolvers<StackReport>();
  const found = Promise.withResolvers<Hang>();
  const late = Promise.withResolvers<readonly HangStack[]>();
  const stacks = new HangStacks({
    read(ranks) {
      asked.push(ranks);
      return answer.promise;
    },
    found: (one) => found.resolve(one),
    late: (_hang, its) => late.resolve(its),
  });
  return { stacks, asked, answer, found: found.promise, late: late.promise };
}

describe('stacks of a verdict', () => {
  it('equal stacks are one, with the thread that called the engine', () => {
    const [main] = stack(0, load).threads;
    if (main === undefined) throw new Error('it has one');
    const worker = { ...main, isMain: false, name: 'trainer', frames: [native('ncclAllReduce', '/srv/libnccl.so.2')] };
    const ranks = [stack(0, reduce), stack(1, load), stack(3, reduce), stack(5, load, { threads: [main, worker] })];
    expect(hangStacks(report(ranks)).map(({ id, ranks: its, thread }) => [id, its, thread])).toEqual([
      [1, '0,3', 'main thread'],
      [2, '1', 'main thread'],
      [3, '5', 'thread trainer'],
    ]);
  });

  it('the blamed ranks and one of each class are read', async () => {
    const { stacks, asked, answer, found } = reading();
    stacks.add(hang('1,7-40', ['0,2-6', '1,7-40']));
    answer.resolve(report([stack(1, load)]));
    expect((await found).verdict.stacks.map(({ ranks }) => ranks)).toEqual(['1']);
    expect(asked).toEqual([[1, ...Array.from({ length: 15 }, (_, index) => index + 7), 0]]);
  });

  it('a verdict does not wait for stacks that are late, which follow', async () => {
    vi.useFakeTimers();
    try {
      const { stacks, answer, found, late } = reading();
      stacks.add(hang('1', []));
      vi.advanceTimersByTime(2000);
      expect((await found).verdict.stacks).toEqual([]);
      answer.resolve(report([stack(1, load)]));
      expect((await late).map(({ ranks }) => ranks)).toEqual(['1']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('the end of the ranks ends the wait for their stacks', async () => {
    const { stacks, found } = reading();
    stacks.add(hang('1', []));
    stacks.close();
    expect((await found).verdict.stacks).toEqual([]);
  });

  it('one line has the innermost frames of the blamed rank', () => {
    const { verdict } = hang('1', []);
    const stacks: HangStack[] = hangStacks(report([stack(0, reduce), stack(1, [native(null), ...load])]));
    expect(hangStackLines({ ...verdict, stacks })).toEqual([
      'rank 1, main thread: read ← load train.py:88 ← train train.py:214 ← <module> train.py:300',
    ]);
    expect(hangStackLines({ blamed: [], stacks })).toHaveLength(2);
    expect(hangStackLines({ ...verdict, stacks: [] })).toEqual([]);
  });

  it('the line of a native program has the innermost functions', () => {
    const frames = ['futex_wait', 'wait', 'step', 'train', 'main'].map((name) => native(name));
    const stacks = hangStacks(report([stack(1, frames)]));
    expect(hangStackLines({ ...hang('1', []).verdict, stacks })).toEqual([
      'rank 1, main thread: futex_wait ← wait ← step ← train',
    ]);
  });

  it('the first numbers of ranges are at most so many', () => {
    expect(firstOfRanges('3,8-15', 4)).toEqual([3, 8, 9, 10]);
    expect(firstOfRanges('', 4)).toEqual([]);
    expect(firstOfRanges('x-y', 4)).toEqual([]);
  });
});
