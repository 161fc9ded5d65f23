/** The table of `ncclrun perf`, column by column, and the lines that it is made from. */
import { describe, expect, test } from 'vitest';
import { parsePerfLine, type PerfRow } from '../../launcher/report/perf-rows.ts';
import { tableFoot, tableHead, tableRow } from '../../launcher/report/perf-table.ts';

describe('the table of ncclrun perf', () => {
  const row: PerfRow = {
    bytes: 1024,
    count: 256,
    type: 'float',
    op: 'sum',
    root: -1,
    inPlace: false,
    timeUs: 3.214,
    algbw: 0.318,
    busbw: 0.5,
    wrong: 0,
  };

  test('head, rows and foot have fixed columns', () => {
    expect(tableHead({ collective: 'all_reduce', device: 'host', ranks: 2, hosts: 1 }).split('\n')).toEqual([
      '# all_reduce on 2 ranks, 1 host, device host',
      '#                                                         out-of-place                         in-place',
      '#        size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong',
      '#         (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)',
      '',
    ]);
    expect(tableRow(row, { ...row, inPlace: true, timeUs: 99.999, wrong: null })).toBe(
      '         1024           256     float     sum      -1     3.21    0.32    0.50       0   100.00    0.32    0.50     N/A\n',
    );
    expect(tableRow(null, { ...row, timeUs: 100 })).toBe(
      '         1024           256     float     sum      -1      N/A     N/A     N/A     N/A    100.0    0.32    0.50       0\n',
    );
    expect([9999, 10_000].map((timeUs) => tableRow({ ...row, timeUs }, null).slice(55, 62))).toEqual([
      ' 9999.0',
      '  10000',
    ]);
    expect([tableRow(null, null), tableFoot([])]).toEqual(['', '']);
    expect(tableFoot([row, { ...row, busbw: 1.5, wrong: 2 }])).toBe(
      '# Out of bounds values : 2 FAILED\n# Avg bus bandwidth    : 1.00000\n#\n',
    );
  });

  test.each(['bytes', 'count', 'root', 'timeUs', 'algbw', 'busbw', 'type', 'op', 'inPlace', 'wrong'])(
    'a row without %s is none',
    (name) => {
      expect(parsePerfLine(JSON.stringify(row))).toEqual(row);
      expect(parsePerfLine(JSON.stringify({ ...row, [name]: undefined }))).toBeNull();
      expect(parsePerfLine(JSON.stringify({ ...row, [name]: [] }))).toBeNull();
    },
  );

  test.each(['collective', 'device', 'ranks', 'hosts'])('a head without %s is none', (name) => {
    const head = { collective: 'c', device: 'd', ranks: 1, hosts: 1 };
    expect(parsePerfLine(JSON.stringify(head))).toEqual(head);
    expect(parsePerfLine(JSON.stringify({ ...head, [name]: [] }))).toBeNull();
    expect([`x${JSON.stringify(head)}`, '{', '{}'].map(parsePerfLine)).toEqual([null, null, null]);
  });
});
