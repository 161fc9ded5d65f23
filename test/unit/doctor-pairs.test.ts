/** Which pairs of hosts doctor measures, and whom it blames for what they show. */
import { describe, expect, it } from 'vitest';
import {
  betterWays,
  doubtfulPairs,
  pairFindings,
  unhinderedRate,
  type MeasuredWay,
} from '../../launcher/doctor/pairs.ts';
import { firstRound, nextRounds } from '../../launcher/doctor/rounds.ts';

const hosts = ['a', 'b', 'c', 'd', 'e', 'f'];

describe('the rounds', () => {
  it('neighbours are measured first, each host once', () => {
    expect(firstRound(hosts)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
    ]);
    expect(firstRound(['a', 'b', 'c'])).toEqual([['a', 'b']]);
    expect(firstRound(['a'])).toEqual([]);
  });

  it('the other neighbours follow where no pair was suspect, or all were', () => {
    const others = [
      [
        ['b', 'c'],
        ['d', 'e'],
        ['f', 'a'],
      ],
    ];
    expect(nextRounds(hosts, firstRound(hosts), [])).toEqual(others);
    expect(nextRounds(hosts, firstRound(hosts), firstRound(hosts))).toEqual(others);
  });

  it('both hosts of a suspect pair are measured with hosts that were well', () => {
    expect(nextRounds(hosts, firstRound(hosts), [['c', 'd']])).toEqual([
      [
        ['c', 'a'],
        ['d', 'b'],
      ],
    ]);
  });

  it('suspects take turns where fewer hosts were well', () => {
    const suspect = [['a', 'b'] as const, ['c', 'd'] as const];
    expect(nextRounds(hosts, firstRound(hosts), suspect)).toEqual([
      [
        ['a', 'e'],
        ['b', 'f'],
      ],
      [
        ['c', 'e'],
        ['d', 'f'],
      ],
    ]);
  });

  it('a host without a partner gets one', () => {
    const odd = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    expect(nextRounds(odd, firstRound(odd), [['a', 'b']])).toEqual([
      [
        ['a', 'c'],
        ['b', 'd'],
        ['g', 'e'],
      ],
    ]);
  });

  it('two hosts need no second round', () => {
    expect(nextRounds(['a', 'b'], [['a', 'b']], [['a', 'b']])).toEqual([]);
  });
});

const way = (from: string, to: string, changes: Partial<MeasuredWay> = {}): MeasuredWay => ({
  from,
  to,
  rail: 0,
  rate: 10,
  latencyUs: 20,
  lost: 0,
  waited: 0,
  error: null,
  ...changes,
});
const both = (one: string, other: string, changes: Partial<MeasuredWay> = {}) => [
  way(one, other, changes),
  way(other, one, changes),
];
const bad = (ways: readonly MeasuredWay[]) => pairFindings(ways).filter(({ answer }) => answer !== 'ok');

const busyAndSlow = (rate: number) =>
  bad([...both('a', 'b', { rate, waited: 0.5 }), ...both('c', 'd'), ...both('e', 'f')]);

const onRails = (rates: readonly number[]) =>
  rates.flatMap((rate, rail) => [
    ...both('a', 'b', { rail, rate }),
    ...both('a', 'c', { rail, rate }),
    ...both('b', 'd', { rail }),
    ...both('c', 'd', { rail }),
    ...both('e', 'f', { rail }),
  ]);

describe('the findings of pairs', () => {
  const well = [...both('a', 'b'), ...both('c', 'd'), ...both('e', 'f')];

  it('hosts of equal pairs are well', () => {
    expect(pairFindings(well)).toMatchObject(hosts.map((host) => ({ check: 'network.bandwidth', answer: 'ok', host })));
  });

  it('a host that is slow with all of its partners is blamed, with the figures', () => {
    const slow = { rate: 1 };
    const found = bad([
      ...both('a', 'b', slow),
      ...both('c', 'd'),
      ...both('e', 'f'),
      ...both('a', 'c', slow),
      ...both('b', 'e'),
    ]);
    expect(found).toMatchObject([{ check: 'network.bandwidth', answer: 'fail', host: 'a' }]);
    expect(found[0]?.message).toBe('slow with b, c: 1.00 GB/s, 20.0 µs for 8 bytes (median of all: 10.0 GB/s)');
  });

  it('a path is named where both of its ends are fast with others', () => {
    const found = bad([
      way('a', 'b', { rate: 1 }),
      way('b', 'a'),
      ...both('c', 'd'),
      ...both('a', 'c'),
      ...both('b', 'd'),
    ]);
    expect(found).toMatchObject([{ check: 'network.bandwidth', host: null, subject: 'a to b' }]);
  });

  it('a host that receives slowly from all is blamed though it sends fast', () => {
    const found = bad([
      way('a', 'b', { rate: 1 }),
      way('b', 'a'),
      way('c', 'b', { rate: 1 }),
      way('b', 'c'),
      ...both('c', 'd'),
      ...both('a', 'd'),
    ]);
    expect(found).toMatchObject([{ check: 'network.bandwidth', host: 'b' }]);
  });

  it('a host to which packets are lost is blamed, not those that send them again', () => {
    const lossy = { lost: 0.01 };
    const found = bad([
      way('a', 'b', lossy),
      way('b', 'a'),
      way('c', 'b', lossy),
      way('b', 'c'),
      ...both('c', 'd'),
      ...both('a', 'd'),
    ]);
    expect(found).toMatchObject([{ check: 'network.loss', answer: 'fail', host: 'b' }]);
    expect(found[0]?.message).toContain('1 % of the packets of TCP were sent again from a to b (median of all: 0 %)');
  });

  it('packets that all lose alike are no finding, nor are few', () => {
    expect(bad(well.map((one) => ({ ...one, lost: 0.02 })))).toEqual([]);
    expect(bad([...both('a', 'b', { lost: 0.005 }), ...both('c', 'd'), ...both('e', 'f')])).toEqual([]);
  });

  it('half as many losses on another way tell whose they are', () => {
    const ways = [way('a', 'b', { lost: 0.01 }), way('b', 'a'), way('c', 'b', { lost: 0.003 }), way('b', 'c')];
    expect(bad([...ways, ...both('c', 'd')])).toMatchObject([{ check: 'network.loss', host: 'b' }]);
    expect(bad([...both('a', 'b', { lost: 0.003 }), ...both('c', 'd'), ...both('e', 'f')])).toEqual([]);
  });

  it('a host that is slow on one rail is named with it, and one that is slow on all without', () => {
    expect(bad(onRails([10, 1])).map(({ host, subject }) => [host, subject])).toEqual([['a', 'rail 1']]);
    expect(bad(onRails([1, 1])).map(({ host, subject }) => [host, subject])).toEqual([['a', '']]);
  });

  it('time in which the hosts had no processor is taken off', () => {
    expect(unhinderedRate(way('a', 'b', { rate: 4, waited: 0.6 }))).toBeCloseTo(10);
    expect(unhinderedRate(way('a', 'b', { rate: 4, waited: 1 }))).toBeCloseTo(40);
    expect(unhinderedRate(way('a', 'b', { rate: null }))).toBeNull();
    expect(bad([...both('a', 'b', { rate: 4, waited: 0.6 }), ...both('c', 'd'), ...both('e', 'f')])).toEqual([]);
  });

  it('a way between busy hosts that is slow in spite of that is a note, and one that is far slower a failure', () => {
    expect(busyAndSlow(2)).toMatchObject([
      {
        answer: 'note',
        host: null,
        subject: 'a to b',
        message: expect.stringMatching(/too busy to tell.* 50 % of the time/u),
      },
      { answer: 'note', subject: 'b to a' },
    ]);
    expect(busyAndSlow(0.5)).toMatchObject([{ answer: 'fail' }, { answer: 'fail' }]);
  });

  it('a host that nobody reaches is named with the reason', () => {
    const lost = { rate: null, latencyUs: null, lost: null, error: 'no route to host' };
    const found = bad([way('a', 'b', lost), way('a', 'c', lost), ...both('b', 'c'), ...both('c', 'd')]);
    expect(found).toMatchObject([
      { check: 'network.reach', host: 'a', message: 'does not reach b, c: no route to host' },
    ]);
  });
});

describe('what is measured once more', () => {
  const ways = [
    ...both('b', 'a', { rate: 1 }),
    ...both('c', 'd', { lost: 0.01 }),
    way('e', 'f', { rate: null, error: 'no route' }),
    ...both('g', 'h'),
    ...both('i', 'k'),
  ];

  it('pairs that failed, were slow or lost packets are measured again, each once', () => {
    expect(doubtfulPairs(ways)).toEqual([
      ['e', 'f'],
      ['a', 'b'],
      ['c', 'd'],
    ]);
    expect(doubtfulPairs([...both('g', 'h'), ...both('i', 'k')])).toEqual([]);
  });

  it('a host that was far slower than usual with two others is not measured again', () => {
    const slow = { rate: 0.1 };
    const sure = [
      ...both('a', 'b', slow),
      ...both('a', 'c', slow),
      ...both('b', 'd'),
      ...both('c', 'e'),
      ...both('e', 'f'),
    ];
    expect(doubtfulPairs(sure)).toEqual([]);
    expect(doubtfulPairs([...both('a', 'b', slow), ...both('c', 'd'), ...both('e', 'f')])).toEqual([['a', 'b']]);
  });

  it('the better of two measurements counts', () => {
    const again = [way('a', 'b', { rate: 9 }), way('c', 'd', { rate: 8, lost: 0 }), way('e', 'f', { rate: 7 })];
    const better = betterWays(ways, again);
    expect(better.map(({ from, to, rate, lost }) => [from, to, rate, lost]).slice(0, 5)).toEqual([
      ['b', 'a', 1, 0],
      ['a', 'b', 9, 0],
      ['c', 'd', 10, 0],
      ['d', 'c', 10, 0.01],
      ['e', 'f', 7, 0],
    ]);
  });
});
