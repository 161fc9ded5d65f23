/** The words that all reports share: nearest words, numbers of GPUs, times, and lines of a given width. */
import { describe, expect, test } from 'vitest';
import { localTime } from '../../launcher/report/local-time.ts';
import { networkSpeed } from '../../control/speed-text.ts';
import { capability, different, gigabytes, gpuList } from '../../launcher/text/gpu-words.ts';
import { editDistance, nearest } from '../../launcher/text/nearest.ts';
import { wrapped } from '../../launcher/text/wrap.ts';

describe('the nearest word', () => {
  test.each([
    ['ab', 'ab', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['abc', 'abd', 1],
    ['abc', 'abcd', 1],
    ['abcd', 'abc', 1],
    ['ab', 'ba', 1],
    ['xab', 'xba', 1],
    ['abc', 'cba', 2],
    ['ab', 'bc', 2],
    ['aab', 'aba', 1],
    ['abcd', 'badc', 2],
    ['kitten', 'sitting', 3],
    ['abx', 'bay', 2],
    ['acb', 'xab', 2],
  ])('the edit distance of "%s" and "%s" is %i', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
  });

  test.each<[string, string[], string | null]>([
    ['ab', ['xb'], 'xb'],
    ['ab', ['xy'], null],
    ['abcde', ['abcxy'], null],
    ['abcdef', ['abcdxy'], 'abcdxy'],
    ['abcdefgh', ['abcdexyz'], null],
    ['abcdefghi', ['abcdefxyz'], 'abcdefxyz'],
    ['abc', ['abcde'], null],
    ['abc', ['abd', 'abe'], 'abd'],
    ['abcdef', ['abxyef', 'abcdex'], 'abcdex'],
    ['a', ['ab'], 'ab'],
    ['a', [], null],
  ])('the nearest word to "%s" among %j is %j', (word, candidates, expected) => {
    expect(nearest(word, candidates)).toBe(expected);
  });
});

test('numbers of GPUs and networks have at most three digits', () => {
  expect([100_000, 99_960, 10_040, 10_000, 9996, 1500, 750].map(gigabytes)).toEqual([
    '100',
    '100',
    '10',
    '10',
    '10',
    '1.5',
    '0.75',
  ]);
  expect(gigabytes(371_300)).toBe('371');
  expect(gigabytes(12_340)).toBe('12.3');
  expect([null, 999, 1000, 25_000, 2550].map(networkSpeed)).toEqual([
    '? Gb/s',
    '999 Mb/s',
    '1 Gb/s',
    '25 Gb/s',
    '2.5 Gb/s',
  ]);
  expect([0, 1, 90].map(capability)).toEqual(['sm unknown', 'sm 1', 'sm 90']);
  expect([[3], [7, 1, 2], []].map(gpuList)).toEqual(['GPU 3', 'GPUs 1-2,7', 'GPUs ']);
  expect(different([2, 1, 2])).toEqual([2, 1]);
});

test('a local time has two digits for each part and three for the milliseconds', () => {
  const time = new Date(2026, 0, 2, 3, 4, 5, 6).getTime();
  expect([time, time + 994, time + 1000, time].map(localTime)).toEqual([
    '2026-01-02 03:04:05.006',
    '2026-01-02 03:04:06.000',
    '2026-01-02 03:04:06.006',
    '2026-01-02 03:04:05.006',
  ]);
});

test.each([
  [10, '  ab cd ef\n'],
  [9, '  ab cd\n  ef\n'],
  [7, '  ab cd\n  ef\n'],
  [6, '  ab\n  cd\n  ef\n'],
  [2, '  ab\n  cd\n  ef\n'],
])('words are wrapped to %i columns where that is possible', (width, text) => {
  expect(wrapped('ab cd ef', '  ', width)).toBe(text);
});
