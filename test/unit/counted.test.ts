import { expect, test } from 'vitest';
import { ranksText, shortRanges, shortRanksText } from '../../launcher/text/counted.ts';

test('ranks are ranges, in whatever order they come', () => {
  expect(ranksText([3])).toBe('rank 3');
  expect(ranksText([5, 1, 0, 2])).toBe('ranks 0-2,5');
});

test('a long list of ranks is its beginning and its end', () => {
  const odd = Array.from({ length: 64 }, (_, index) => 2 * index + 1);
  const text = shortRanges(odd);
  expect(text).toMatch(/^1,3,5,.*,…,127$/u);
  expect(text.length).toBeLessThan(90);
  expect(shortRanksText(odd)).toBe(`ranks ${text}`);
  expect(ranksText(odd)).toContain(',63,65,');
});
