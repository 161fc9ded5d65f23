/** Sizes, memory, accounts and foreign text for people. */
import { describe, expect, test } from 'vitest';
import { groupText, userText } from '../../control/accounts.ts';
import { monotonicMs, steadyClock } from '../../control/clock.ts';
import { freeText, holdersText } from '../../control/gpu-memory-text.ts';
import { printable, printableLine, printableLines } from '../../control/printable.ts';
import { sizeText } from '../../control/size-text.ts';

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1 kB'],
  [999_499, '999 kB'],
  [1e6, '1.0 MB'],
  [1_250_000, '1.3 MB'],
  [1e9, '1.0 GB'],
  [12.34e9, '12.3 GB'],
])('%i bytes read %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

describe('the memory of a GPU', () => {
  test('one digit after the point stands where there is one before it', () => {
    const GIB = 2 ** 30;
    expect(freeText({ free: 1.26 * GIB, total: 10 * GIB })).toBe('1.3 of 10 GiB');
    expect(freeText({ free: 9.97 * GIB, total: 139.6 * GIB })).toBe('10 of 140 GiB');
  });

  test('two holders are named', () => {
    const holder = { pid: 1, program: 'python', user: 'bob', used: 1 };
    const unknown = { pid: 2, program: null, user: null, used: 1 };
    expect(holdersText([])).toBe('no process that the driver names');
    expect(holdersText([holder])).toBe('pid 1 python, user bob');
    expect(holdersText([holder, unknown])).toBe('pid 1 python, user bob; pid 2');
    expect(holdersText([unknown, holder, holder, holder])).toBe('pid 2; pid 1 python, user bob and 2 more');
  });
});

describe('text of others', () => {
  test.each([
    ['a\tb~', 'a\tb~'],
    ['a\nb\r', String.raw`a\nb\r`],
    ['\u0000\u001B[0m\u007F\u0085', String.raw`\x00\x1b[0m\u007f\u0085`],
    ['\u202Ea\u200Db\u{E0001}', `${String.raw`\u202e`}a\u200Db${String.raw`\udb40\udc01`}`],
    ['ä → 😀', 'ä → 😀'],
    ['\uD800', String.raw`\ud800`],
  ])('%j is one line without control characters', (text, expected) => {
    expect(printable(text)).toBe(expected);
    expect(printableLine(text)).toBe(expected);
  });

  test('newlines stay where the text as a whole is ours', () => {
    expect(printableLines('a\n\tb')).toBe('a\n\tb');
    expect(printableLines('ä\n\r')).toBe(`ä\n${String.raw`\r`}`);
  });

  test('long text is cut, but not within a character', () => {
    const whole = 'x'.repeat(8192);
    expect(printable(whole)).toBe(whole);
    expect(printable(`${whole}yä`)).toBe(`${whole}… (3 more bytes)`);
    const cut = 'x'.repeat(8191);
    expect(printable(`${cut}😀`)).toBe(`${cut}… (4 more bytes)`);
    expect(printable(`${cut}\uE000z`)).toBe(`${cut}\uE000… (1 more bytes)`);
    expect(printable(`${cut}\uDBFF\uDFFFz`)).toBe(`${cut}… (5 more bytes)`);
  });
});

test('users and groups have their numbers, and names where the system knows them', () => {
  expect([userText(0), groupText(0)]).toEqual(['uid 0 (root)', 'group 0 (root)']);
  expect([userText(4_000_000_001), groupText(4_000_000_001)]).toEqual(['uid 4000000001', 'group 4000000001']);
});

test('the steady clock counts milliseconds and cancels', async () => {
  const before = monotonicMs();
  const cancelled = steadyClock.after(0, () => {
    throw new Error('it was cancelled');
  });
  cancelled.cancel();
  await new Promise<void>((resolve) => {
    steadyClock.after(5, resolve);
  });
  const passed = steadyClock.now() - before;
  expect(passed).toBeGreaterThan(4);
  expect(Math.abs(monotonicMs() - Number(process.hrtime.bigint()) / 1e6)).toBeLessThan(1000);
});
