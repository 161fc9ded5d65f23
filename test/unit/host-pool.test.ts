/** Which hosts the next attempt of a job uses. */
import { describe, expect, test } from 'vitest';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { mergeSettings, Settings } from '../../launcher/cli/settings.ts';
import { HostPool } from '../../launcher/job/host-pool.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import type { JobRequest, RankMap } from '../../launcher/model/types.ts';
import { hostNamed } from '../rig/host-slots.ts';

const request = jobRequest(new Settings<JobOptionName>(mergeSettings(runCommandLine.options, [])), ['p']);
const hosts = [
  hostNamed('a'),
  hostNamed('b'),
  hostNamed('small', { slots: 1 }),
  hostNamed('c'),
  hostNamed('d', { slots: null }),
];

/** Two ranks on a, `onB` on b. */
const mapWith = (onB: number): RankMap => ({
  hosts: hosts.slice(0, 2),
  ranks: Array.from({ length: 2 + onB }, (_, rank) => ({
    rank,
    host: rank < 2 ? 0 : 1,
    program: 0,
    localRank: 0,
    localSize: 1,
    numa: null,
    gpu: null,
  })),
});
const map = mapWith(2);
const names = ({ hosts: all }: RankMap): string[] => all.map(({ name }) => name);

const lost = (host: string): Failure => ({ type: 'host-lost', host, cause: 'silent', silentMs: 1, detail: '' });
const exit = (host: string): Failure => {
  return { type: 'rank-exit', host, rank: 0, pid: 1, exitCode: 1, outOfMemory: false, stderrTail: [] };
};
const timeout: Failure = { type: 'timeout', seconds: 1 };

function poolOf(changes: Partial<JobRequest> = {}, from = hosts): HostPool {
  return new HostPool({ ...request, ...changes }, from, map);
}

function next(pool: HostPool, primary: Failure, others: readonly Failure[] = [], lostSpares: readonly string[] = []) {
  const replacement = pool.next({ primary, failures: [primary, ...others], lostSpares: new Set(lostSpares) }, map);
  return [names(replacement.map), replacement.notices];
}

describe('the hosts of the next attempt', () => {
  test('hosts without ranks are spares, unless a program has hosts of its own', () => {
    expect(poolOf().spares.map(({ name }) => name)).toEqual(['small', 'c', 'd']);
    const programs = request.programs.map((program) => ({ ...program, hostList: 'a' }));
    expect(poolOf({ programs }).spares).toEqual([]);
  });

  test.each<[string, Failure, boolean]>([
    ['a lost host', lost('a'), true],
    ['a failed rank', exit('a'), false],
    ['a timeout', timeout, false],
  ])('after %s the next attempt may go without the host: %s', (_what, failure, expected) => {
    expect(poolOf().replaces(failure, map)).toBe(expected);
    expect(poolOf({}, hosts.slice(0, 3)).replaces(failure, map)).toBe(false);
  });

  test('a lost host gives its place to the first spare with room for its ranks', () => {
    const pool = poolOf();
    expect(next(pool, lost('b'))).toEqual([['a', 'c'], ['c takes the place of b']]);
    expect(pool.spares.map(({ name }) => name)).toEqual(['small', 'd']);
    expect(next(pool, lost('b'))).toEqual([['a', 'd'], ['d takes the place of b']]);
    expect(next(pool, lost('b'))).toEqual([
      ['a', 'b'],
      ['b is used again: no other host of the job has room for its ranks'],
    ]);
  });

  test('a spare has room for as many ranks as it has slots, or any number with --oversubscribe', () => {
    const one = mapWith(1);
    const pool = poolOf();
    const { map: mapped } = pool.next({ primary: lost('b'), failures: [lost('b')], lostSpares: new Set() }, one);
    expect(names(mapped)).toEqual(['a', 'small']);
    expect(next(poolOf({ oversubscribe: true }), lost('b'))).toEqual([['a', 'small'], ['small takes the place of b']]);
  });

  test('spares that are lost take no place', () => {
    expect(next(poolOf(), lost('b'), [], ['c'])).toEqual([['a', 'd'], ['d takes the place of b']]);
  });

  test('all lost hosts are replaced, whichever failure is the primary one', () => {
    expect(next(poolOf(), exit('a'), [lost('b'), lost('b')])).toEqual([['a', 'c'], ['c takes the place of b']]);
    expect(next(poolOf(), lost('a'), [lost('b')])).toEqual([
      ['c', 'd'],
      ['c takes the place of a', 'd takes the place of b'],
    ]);
    expect(next(poolOf(), lost('elsewhere'))).toEqual([['a', 'b'], []]);
    expect(next(poolOf(), timeout)).toEqual([['a', 'b'], []]);
  });

  test('a host whose ranks fail twice is replaced, or used again where none has room', () => {
    const pool = poolOf();
    expect(next(pool, exit('b'))).toEqual([['a', 'b'], []]);
    expect(next(pool, exit('a'))).toEqual([['a', 'b'], []]);
    expect(next(pool, exit('b'))).toEqual([['a', 'c'], ['c takes the place of b, whose ranks have failed 2 times']]);
    const none = poolOf({}, hosts.slice(0, 2));
    next(none, exit('b'));
    next(none, exit('b'));
    expect(next(none, exit('b'))).toEqual([
      ['a', 'b'],
      ['b, whose ranks have failed 3 times, is used again: no other host of the job has room for its ranks'],
    ]);
  });
});
