import { describe, expect, test } from 'vitest';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { withDetectedSlots } from '../../launcher/allocation/detected.ts';
import { mapRanks, type MappingRequest } from '../../launcher/mapping/map-ranks.ts';
import { failureFrom } from './failure-from.ts';

const machine = { hostName: 'head', isOwn: () => false, userName: () => 'me', readFile: (content: string) => content };

/** The allocation of a hostfile's content; `/` stands for a newline. */
const hosts = (content: string | null) =>
  content === null
    ? allocateHosts({ hostfile: null, hostList: null }, machine)
    : allocateHosts({ hostfile: content.replaceAll('/', '\n'), hostList: null }, machine);

interface Wishes {
  readonly ranks?: number | null;
  readonly ranksPerHost?: number | 'gpu' | null;
  readonly oversubscribe?: boolean;
}

const request = ({ ranks = null, ranksPerHost = null, oversubscribe = false }: Wishes): MappingRequest => ({
  programs: [{ argv: ['prog'], ranks, ranksPerHost }],
  oversubscribe,
  mapBy: { by: 'slot' },
  rankBy: null,
});

/** `a:2 b:1`: ranks per host, in order of rank. */
function countsOf(content: string | null, wishes: Wishes): string | null {
  const map = mapRanks(hosts(content), request(wishes));
  if (map === null) return null;
  expect(map.ranks.map((rank) => rank.rank)).toEqual(map.ranks.map((_, index) => index));
  for (const [index, host] of map.hosts.entries()) {
    const local = map.ranks.filter((rank) => rank.host === index);
    expect(
      local.map((rank) => rank.localRank),
      host.name,
    ).toEqual(local.map((_, place) => place));
    expect(local.every((rank) => rank.localSize === local.length)).toBe(true);
  }
  return map.hosts
    .map((host, index) => `${host.name}:${map.ranks.filter((rank) => rank.host === index).length}`)
    .join(' ');
}

describe('mapRanks', () => {
  test.each<[string, string | null, Wishes, string | null]>([
    ['every slot', 'a:2/b:3', {}, 'a:2 b:3'],
    ['by slot', 'a:2/b:3', { ranks: 3 }, 'a:2 b:1'],
    ['hosts without ranks drop out', 'a:2/b:3', { ranks: 2 }, 'a:2'],
    ['exactly all', 'a:2/b:3', { ranks: 5 }, 'a:2 b:3'],
    ['-N', 'a:2/b:3', { ranksPerHost: 1 }, 'a:1 b:1'],
    ['-N with -n', 'a:2/b:3', { ranksPerHost: 2, ranks: 3 }, 'a:2 b:1'],
    ['-N needs no counts', 'a/b', { ranksPerHost: 4 }, 'a:4 b:4'],
    ['oversubscribed evenly', 'a:1/b:2', { ranks: 7, oversubscribe: true }, 'a:3 b:4'],
    ['oversubscribed up to max_slots', 'a slots=1 max_slots=2/b:2', { ranks: 7, oversubscribe: true }, 'a:2 b:5'],
    ['-N oversubscribed', 'a:2/b:3', { ranksPerHost: 4, oversubscribe: true }, 'a:4 b:4'],
    ['localhost has no limit', null, { ranks: 100 }, 'localhost:100'],
    ['localhost with -N', null, { ranksPerHost: 9 }, 'localhost:9'],
    ['localhost takes what is left', 'a:2/localhost', { ranks: 9 }, 'a:2 localhost:7'],
    ['stated slots of localhost hold', 'localhost:2', {}, 'localhost:2'],
    ['unknown slots are not reached', 'a:2/b', { ranks: 2 }, 'a:2'],
    ['unknown slots', 'a:2/b', { ranks: 3 }, null],
    ['unknown slots, every slot', 'a:2/b', {}, null],
    ['localhost, every slot', null, {}, null],
    ['localhost before others', 'localhost/a:2', { ranks: 3 }, null],
  ])('mapRanks gives the expected ranks per host: %s', (_name, content, wishes, counts) => {
    expect(countsOf(content, wishes)).toBe(counts);
  });
});

describe('detected slots', () => {
  const facts = new Map([
    ['a', { cores: 6, gpus: 0 }],
    ['b', { cores: 64, gpus: 8 }],
    ['localhost', { cores: 2, gpus: 0 }],
  ]);
  const counts = (content: string | null, wishes: Wishes) => {
    const map = mapRanks(withDetectedSlots(hosts(content), facts), request(wishes));
    return map?.hosts
      .map((host, index) => `${host.name}:${map.ranks.filter((rank) => rank.host === index).length}`)
      .join(' ');
  };

  test.each<[string, string | null, Wishes, string]>([
    ['cores, or GPUs where there are any', 'a/b', {}, 'a:6 b:8'],
    ['stated counts stay', 'a:2/b', {}, 'a:2 b:8'],
    ['max_slots limits', 'a max_slots=4/b', {}, 'a:4 b:8'],
    ['localhost: a rank per core', null, {}, 'localhost:2'],
    ['localhost first, beyond its cores last', 'localhost/a:2', { ranks: 9 }, 'localhost:7 a:2'],
  ])('detected slots give the expected ranks per host: %s', (_name, content, wishes, expected) => {
    expect(counts(content, wishes)).toBe(expected);
  });

  test('detected slots limit the number of ranks', () => {
    const failure = failureFrom(() => counts('a/b', { ranks: 15 }));
    expect(failure).toMatchObject({
      type: 'allocation',
      message: '15 ranks asked for, but there are 14 slots (a: 6, b: 8)',
    });
  });
});

describe('rejected mappings', () => {
  test.each<[string, Wishes, string, string]>([
    ['a:2/b:3', { ranks: 6 }, '6 ranks asked for, but there are 5 slots (a: 2, b: 3)', '--oversubscribe'],
    ['a:2/b:3', { ranksPerHost: 3 }, '3 ranks on a asked for, but it has slots=2 (stated at a:2', '--oversubscribe'],
    ['a:2/b:2', { ranksPerHost: 2, ranks: 5 }, '5 ranks asked for, but -N 2 on 2 hosts makes 4', 'raise -N to 3'],
    [
      'a slots=1 max_slots=2',
      { ranks: 3, oversubscribe: true },
      '3 ranks asked for, but there are 2 max_slots (a: 2)',
      'state more max_slots',
    ],
  ])('the hosts %s with %o are rejected with both numbers and a suggestion', (content, wishes, message, remedy) => {
    const failure = failureFrom(() => countsOf(content, wishes));
    expect(failure.type).toBe('allocation');
    if (failure.type !== 'allocation') return;
    expect(failure.message).toContain(message);
    expect(failure.remedy).toContain(remedy);
  });

  test('the message shortens a long list of hosts', () => {
    const content = Array.from({ length: 40 }, (_, index) => `n${index}:1`).join('/');
    expect(failureFrom(() => countsOf(content, { ranks: 41 }))).toMatchObject({
      message: expect.stringContaining('n7: 1 and 32 more hosts'),
    });
  });
});

test('mapRanks maps 100,000 ranks', () => {
  const content = Array.from({ length: 12_500 }, (_, index) => `n${index}:8`).join('/');
  const map = mapRanks(hosts(content), request({}));
  expect(map?.ranks.length).toBe(100_000);
  expect(map?.ranks.at(-1)).toEqual({
    rank: 99_999,
    host: 12_499,
    program: 0,
    localRank: 7,
    localSize: 8,
    numa: null,
    gpu: null,
  });
});
