/** What `ncclrun tune` prints: the fastest variant of each size, and how much slower the planned one is. */
import { describe, expect, it } from 'vitest';
import type { TuneRow } from '../../launcher/tune/lines.ts';
import { parseTuneLine } from '../../launcher/tune/lines.ts';
import { tuneFoot, tuneHead, tuneLine } from '../../launcher/tune/text.ts';

const usual: TuneRow = {
  collective: 'all_reduce',
  bytes: 1024,
  algorithm: 'ring',
  protocol: 'll',
  channels: 2,
  threads: 512,
  timeUs: 10,
  spread: 0.02,
  planned: false,
};

function row(change: Partial<TuneRow>): TuneRow {
  return { ...usual, ...change };
}

/** The words of a line, without the spaces between its columns. */
function words(rows: readonly TuneRow[]): string[] {
  return tuneLine(rows).trim().split(/ {2,}/u);
}

describe('the line of a size', () => {
  it('the line of a size says by how much the planned variant is slower than the fastest', () => {
    const planned = row({ algorithm: 'tree', protocol: 'simple', channels: 4, timeUs: 12.5, planned: true });
    expect(words([planned, row({ timeUs: 11 }), row({ channels: 1 })])).toEqual([
      'all_reduce',
      '1024',
      'ring ll 1x512',
      '10.00',
      'tree simple 4x512',
      '12.50',
      '25 %',
    ]);
  });

  it('the line of a size says that the planned variant is the same if it is the fastest', () => {
    expect(words([row({ planned: true }), row({ timeUs: 11 })])).toEqual([
      'all_reduce',
      '1024',
      'ring ll 2x512',
      '10.00',
      'same',
      '0 %',
    ]);
  });

  it('the line of a size names the first of two equally fast variants, and no loss if none is planned', () => {
    expect(words([row({ channels: 3 }), row({ channels: 5 })])).toEqual([
      'all_reduce',
      '1024',
      'ring ll 3x512',
      '10.00',
      'same',
    ]);
  });

  it('the line of a size without measurements is empty', () => {
    expect(tuneLine([])).toBe('');
  });

  it.each([
    [99.994, '99.99'],
    [100, '100.0'],
    [9999.94, '9999.9'],
    [10_000, '10000'],
  ])('a time of %d microseconds reads %s', (timeUs, text) => {
    expect(words([row({ timeUs })])[3]).toBe(text);
  });

  it('the columns of a line stand below those of the head', () => {
    const [, names = '', units = ''] = tuneHead({ device: 'host', ranks: 4, hosts: 1 }).split('\n');
    const line = tuneLine([row({ planned: true })]);
    expect(line.indexOf('ring')).toBe(names.indexOf('fastest'));
    expect(line.indexOf('same')).toBe(names.indexOf('planned'));
    expect(line.indexOf('10.00') + 5).toBe(units.indexOf('(us)') + 4);
  });
});

describe('the foot', () => {
  it('the foot counts the sizes at which the planned variant is as fast, and names the worst', () => {
    const sizes = [
      [row({ planned: true, timeUs: 10.4 }), row({})],
      [row({ bytes: 2048, planned: true, timeUs: 15 }), row({ bytes: 2048 })],
      [row({ bytes: 4096, planned: true, timeUs: 13 }), row({ bytes: 4096 })],
    ];
    expect(tuneFoot(sizes)).toBe(
      '# all_reduce: what is planned was as fast at 1 of 3 sizes; most at 2048 bytes: 50 % slower\n',
    );
  });

  it('the foot names a worst size from a loss of 5 % on', () => {
    expect(tuneFoot([[row({ planned: true, timeUs: 10.4 }), row({})]])).toBe(
      '# all_reduce: what is planned was as fast at 1 of 1 sizes\n',
    );
    expect(tuneFoot([[row({ planned: true, timeUs: 21 }), row({ timeUs: 20 })]])).toBe(
      '# all_reduce: what is planned was as fast at 0 of 1 sizes; most at 1024 bytes: 5 % slower\n',
    );
  });

  it('the foot has a line for each collective and ignores sizes without a planned variant', () => {
    const gather = row({ collective: 'all_gather', planned: true });
    expect(tuneFoot([[row({})], [gather]])).toBe('# all_gather: what is planned was as fast at 1 of 1 sizes\n');
  });
});

describe('a line of the ranks’ output', () => {
  it('a line of the ranks is a head, a row or output of the program', () => {
    const head = { device: 'host', ranks: 2, hosts: 1 };
    expect(parseTuneLine(JSON.stringify(head))).toEqual(head);
    expect(parseTuneLine(JSON.stringify({ ...usual, algorithm: 1, protocol: 0 }))).toMatchObject({ bytes: 1024 });
    expect(parseTuneLine(JSON.stringify({ ...usual, algorithm: 99, protocol: 0 }))).toBeNull();
    expect(parseTuneLine(JSON.stringify({ ...usual, algorithm: 1, protocol: 99 }))).toBeNull();
    expect(parseTuneLine('{"device":')).toBeNull();
    expect(parseTuneLine('loss 0.5')).toBeNull();
  });
});
