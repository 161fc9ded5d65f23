/** What stands on stderr already when a failure is reported, and what a measuring program's output consists of. */
import { describe, expect, test } from 'vitest';
import type { OutputChunk } from '../../launcher/model/event.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { MeasuredLines } from '../../launcher/report/measured-lines.ts';
import { Shown } from '../../launcher/report/shown.ts';

const chunk = (text: string, rank = 0, stream: OutputChunk['stream'] = 'stderr'): OutputChunk => ({
  rank,
  host: 'h',
  stream,
  time: 0,
  bytes: Buffer.from(text),
  partial: false,
});

const exit = (rank: number, stderrTail: readonly string[]): Failure => ({
  type: 'rank-exit',
  host: 'h',
  rank,
  pid: 1,
  exitCode: 1,
  outOfMemory: false,
  stderrTail,
});
const late = (stderr: { rank: number; tail: readonly string[] } | null): Failure => {
  return { type: 'init-timeout', seconds: 1, what: 'w', missing: [], stderr };
};

describe("a rank's last words", () => {
  test.each<[string, OutputChunk[], boolean]>([
    ['nothing', [], false],
    ['both lines', [chunk('a\nb\n')], true],
    ['the lines in two pieces', [chunk('a\n'), chunk('b\n')], true],
    ['one line only', [chunk('b\n')], false],
    ['an unfinished second line', [chunk('a\nb')], false],
    ['the lines of another rank', [chunk('a\nb\n', 1)], false],
    ['lines of another rank below', [chunk('a\nb\n'), chunk('x\n', 1)], false],
    ['its stdout below', [chunk('a\nb\n'), chunk('x\n', 0, 'stdout')], false],
    ['its lines, broken by its stdout', [chunk('a\n'), chunk('x\n', 0, 'stdout'), chunk('b\n')], false],
    ['many lines', [chunk('x\n'.repeat(50))], true],
  ])('the last words are in sight when stderr has shown %s: %s', (_what, chunks, inSight) => {
    const shown = new Shown();
    for (const one of chunks) shown.chunk(one);
    expect(shown.trimmed(exit(0, ['a', 'b']))).toEqual(exit(0, inSight ? [] : ['a', 'b']));
    const waiting = { rank: 0, tail: ['a', 'b'] };
    expect(shown.trimmed(late(waiting))).toEqual(late(inSight ? null : waiting));
  });

  test('ten lines are counted, and failures without last words stay as they are', () => {
    const shown = new Shown();
    for (let line = 0; line < 9; line++) shown.chunk(chunk('x\n'));
    const ten = Array.from({ length: 10 }, () => 'x');
    expect(shown.trimmed(exit(0, ten))).toEqual(exit(0, ten));
    shown.chunk(chunk('x\n'));
    expect(shown.trimmed(exit(0, ten))).toEqual(exit(0, []));
    expect(shown.trimmed(late(null))).toEqual(late(null));
    expect(shown.trimmed({ type: 'timeout', seconds: 1 })).toEqual({ type: 'timeout', seconds: 1 });
  });

  test('a message of ours is buried under 20 lines of ranks, of either stream', () => {
    const shown = new Shown();
    shown.chunk(chunk('x\n'.repeat(12)));
    shown.chunk(chunk('x\n'.repeat(7), 1, 'stdout'));
    expect(shown.buried).toBe(false);
    shown.chunk(chunk('x\n'));
    expect(shown.buried).toBe(true);
    shown.reported();
    expect(shown.buried).toBe(false);
    shown.chunk(chunk(`${'x\n'.repeat(19)}x`));
    expect(shown.buried).toBe(false);
    shown.chunk(chunk('\n'));
    expect(shown.buried).toBe(true);
  });
});

const taken = (chunks: readonly OutputChunk[]) => {
  const measured = new MeasuredLines((line) => (line.startsWith('#') ? Number(line.slice(1)) : null));
  return chunks.map((one) => {
    const took = measured.take(one);
    if (took === null) return null;
    const { others } = took;
    return [took.lines, others === null ? null : [others.stream, others.partial, Buffer.from(others.bytes).toString()]];
  });
};

describe("a measuring program's output", () => {
  test('only stdout of rank 0 is part of a measurement', () => {
    expect(taken([chunk('#1\n', 1, 'stdout'), chunk('#1\n'), chunk('#1\n', 0, 'stdout')])).toEqual([
      null,
      null,
      [[1], null],
    ]);
  });

  test('lines may come in pieces, and other lines go to stderr', () => {
    const pieces = ['#1', '2\n#3\nother\n', 'more\n#', '4\n'].map((text) => chunk(text, 0, 'stdout'));
    expect(taken(pieces)).toEqual([
      [[], null],
      [
        [12, 3],
        ['stderr', false, 'other\n'],
      ],
      [[], ['stderr', false, 'more\n']],
      [[4], null],
    ]);
  });
});
