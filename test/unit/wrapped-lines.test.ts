/** Lines of ours on a terminal: they are broken between words, and colors take no columns. */
import { expect, test } from 'vitest';
import { makePaint, wrappedPainted } from '../../launcher/text/colour.ts';

test('a long line goes on further in, between words', () => {
  expect(wrappedPainted('ncclrun: one two three\n  next: four five six\nshort\n', 16)).toBe(
    'ncclrun: one two\n  three\n  next: four\n        five six\nshort\n',
  );
});

test('a word that is wider than the terminal stays whole', () => {
  expect(wrappedPainted('a 0123456789 b', 5)).toBe('a\n  0123456789\n  b');
});

test('colors take no columns', () => {
  const paint = makePaint(true, { FORCE_COLOR: '1' });
  const line = `${paint('red', 'ncclrun:')} ${paint('bold', 'one two')}`;
  expect(wrappedPainted(line, 16)).toBe(line);
  expect(wrappedPainted(line, 12).split('\n')).toHaveLength(2);
});
