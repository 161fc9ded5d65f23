/** What doctor prints, and its exit status. */
import { describe, expect, it, test } from 'vitest';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { findingsText, summaryText } from '../../launcher/doctor/text.ts';
import { documentOf, REACHED, statusOf } from '../../launcher/doctor/verdict.ts';
import { reachFindings, slowStarters, withSecondStart } from '../../launcher/cli/reach-findings.ts';
import { wellHost } from '../rig/readings.ts';

const plain = (_style: string, text: string): string => text;
const finding = (changes: Partial<Finding>): Finding => ({
  check: 'files.hang',
  answer: 'fail',
  host: 'h1',
  subject: '/data',
  message: 'does not answer',
  remedy: 'see its server',
  ...changes,
});

describe('the text', () => {
  it('the worst comes first, equal findings of several hosts are one, and what is well is left out', () => {
    const all = [
      finding({ answer: 'note', check: 'os.same', subject: '', message: 'kernel 5', remedy: null }),
      finding({}),
      finding({ host: 'h2' }),
      finding({ host: 'h3', answer: 'ok' }),
    ];
    expect(findingsText(all, false, plain)).toBe(
      'fail    files.hang  h[1-2] /data: does not answer\n        next: see its server\nnote    os.same  h1: kernel 5\n',
    );
    expect(findingsText(all, true, plain)).toContain('ok      files.hang  h3');
    expect(summaryText(all, 3, 1.25)).toBe('3 hosts, 1.3 s: 2 failures, 1 note; 1 check ok\n');
    expect(summaryText([], 1, 0)).toBe('1 host, 0.0 s: nothing wrong; 0 checks ok\n');
  });

  it('names of many hosts are cut, and their characters printable', () => {
    const all = Array.from('abcdefgh', (host) => finding({ host, message: 'bad\u001b[31m' }));
    const text = findingsText(all, false, plain);
    expect(text).toContain('fail    files.hang  a, b, c, d, e, f and 2 more /data: bad');
    expect(text).not.toContain('\u001b');
  });
});

test.each([
  ['nothing', [], true, 0],
  ['a note', [finding({ answer: 'note' })], true, 0],
  ['a warning', [finding({ answer: 'warn' })], true, 1],
  ['a warning that does not count', [finding({ answer: 'warn' })], false, 0],
  ['an unknown answer', [finding({ answer: 'unknown' })], false, 1],
  ['a failure', [finding({})], false, 1],
  ['a host that was not reached', [finding({}), finding({ check: REACHED })], true, 125],
] as const)('the exit status of %s', (_what, findings, warningsCount, status) => {
  expect(statusOf(findings, warningsCount)).toBe(status);
  expect(documentOf({ takenAt: 7, hosts: ['h1'], findings, ways: [] }, 0.1234, status)).toMatchObject({
    schemaVersion: 1,
    ok: status === 0,
    exitCode: status,
    takenAt: 7,
    seconds: 0.123,
  });
});

const asked = (name: string, startMs: number | null, clockAheadMs = 0, dropped = 0) => ({
  name,
  read: startMs === null ? null : { name, readings: wellHost() },
  failure: startMs === null ? { message: 'no route', remedy: 'see ssh -v' } : null,
  startMs,
  clockAheadMs,
  dropped,
});

const slowOf = (times: readonly number[]) =>
  reachFindings(times.map((time, index) => asked(`h${index}`, time))).filter(({ answer }) => answer === 'warn');
const clockOf = (ms: number) => reachFindings([asked('a', 100, ms)]).find(({ check }) => check === 'time.offset');

const droppedOf = (dropped: number) =>
  reachFindings([asked('a', 100, 0, dropped)]).find(({ check }) => check === 'login.dropped');

describe('reaching hosts', () => {
  it('a host that does not answer fails with the reason', () => {
    expect(reachFindings([asked('a', 100), asked('b', null)]).filter(({ answer }) => answer !== 'ok')).toEqual([
      { check: REACHED, answer: 'fail', host: 'b', subject: '', message: 'no route', remedy: 'see ssh -v' },
    ]);
  });

  it('doctor warns of a host that takes far longer than others', () => {
    expect(slowOf([1000, 1000, 3100])).toMatchObject([
      { host: 'h2', message: 'its agent took 3.1 s to start (others: 1.0)' },
    ]);
    expect(slowOf([2000, 2000, 3100])).toEqual([]);
    expect(slowOf([100, 100, 3000])).toEqual([]);
    expect(slowOf([3100])).toHaveLength(1);
  });

  it('a host that starts fast the second time is well', () => {
    const first = [asked('a', 1000), asked('b', 9000), asked('c', 9000), asked('d', 900), asked('e', 1000)];
    expect(slowStarters(first)).toEqual(['b', 'c']);
    const both = withSecondStart(first, [asked('b', 1000), asked('c', 8000)]);
    expect(slowStarters(both)).toEqual(['c']);
    expect(withSecondStart([asked('b', 9000)], [asked('b', null)])).toMatchObject([{ startMs: 9000 }]);
  });

  it('doctor warns of a clock that is off by more than two seconds, either way', () => {
    expect(clockOf(2001)).toMatchObject({ answer: 'warn', message: "its clock is 2.0 s ahead of this host's" });
    expect(clockOf(-2500)).toMatchObject({ answer: 'warn', message: "its clock is 2.5 s behind this host's" });
    expect(clockOf(2000)).toMatchObject({
      answer: 'note',
      message: "its clock is at least 2000 ms ahead of this host's",
    });
    expect(clockOf(50)).toMatchObject({ answer: 'ok' });
  });

  it('doctor warns of an sshd that dropped connections before the login', () => {
    expect(droppedOf(0)).toMatchObject({ answer: 'ok' });
    expect(droppedOf(1)).toMatchObject({
      answer: 'warn',
      message: 'its sshd dropped a connection before the login',
      remedy: 'raise MaxStartups in its sshd_config (as root)',
    });
    expect(droppedOf(2)).toMatchObject({ message: 'its sshd dropped 2 connections before the login' });
  });
});
