/** The settings files' JSON is JSON.parse's: what it takes we take, with the same value; what it refuses we refuse, naming a place in the text. */
import { describe, expect, test } from 'vitest';
import { JsonMistake, type JsonNode, parseJsonSource, positionOf } from '../../launcher/cli/json-source.ts';
import { seededRandom } from '../rig/random.ts';

function valueOf(node: JsonNode): unknown {
  switch (node.type) {
    case 'object':
      return Object.fromEntries(node.entries.map(({ key, value }) => [key, valueOf(value)]));
    case 'array':
      return node.items.map(valueOf);
    case 'null':
      return null;
    default:
      return node.value;
  }
}

function ours(text: string): { value: unknown } | 'refused' {
  try {
    return { value: valueOf(parseJsonSource(text)) };
  } catch (error) {
    if (!(error instanceof JsonMistake)) throw error;
    const { line, column, length } = positionOf('f', text, error.span);
    expect(Math.min(line, column, length)).toBeGreaterThan(0);
    return 'refused';
  }
}

function theirs(text: string): { value: unknown } | 'refused' {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return 'refused';
  }
}

const samples = [
  '{"np": 4, "hostfile": "hosts", "export": ["A", "B=1"], "timeout": 0.5}',
  '[1e3, -0, -1.5E+2, 01, 1., .5, +1, 0x1, true, false, null, nul]',
  '{"a": {"b": [[], {}, [1, [2]]]}, "\\u0041\\n\\"": "x\\\\"}',
  '["\\x", "\\u12g4", "tab\there"]',
];

describe('agreement with JSON.parse', () => {
  test.each([
    '',
    ' ',
    '{}',
    '[]',
    '"x"',
    '-',
    '--1',
    '1 2',
    '[1,]',
    '{,}',
    '{"a"}',
    '{"a":}',
    '[,1]',
    '"',
    '\\',
    ...samples,
  ])('the parser agrees with JSON.parse about %j', (text) => {
    expect(ours(text)).toEqual(theirs(text));
  });

  test('the parser agrees with JSON.parse about random changes to samples', () => {
    const seed = Date.now() % 1_000_000;
    const pick = seededRandom(seed);
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      ' ',
      '\n',
      '0',
      '1',
      '.',
      'e',
      '-',
      'true',
      'null',
      'x',
      'é',
      '/',
    ];
    for (let round = 0; round < 5000; round += 1) {
      let text = samples[pick(samples.length)] ?? '';
      for (let change = pick(4); change >= 0; change -= 1) {
        const at = pick(text.length + 1);
        text = text.slice(0, at) + (pieces[pick(pieces.length)] ?? '') + text.slice(at + pick(3));
      }
      expect({ seed, text, result: ours(text) }).toEqual({ seed, text, result: theirs(text) });
    }
  });
});

test('the parser rejects deeply nested text', () => {
  expect(ours(`${'['.repeat(200)}${']'.repeat(200)}`)).toBe('refused');
  expect(ours('['.repeat(100_000))).toBe('refused');
});
