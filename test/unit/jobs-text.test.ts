import { expect, it } from 'vitest';
import { durationText, jobsText } from '../../launcher/jobs/text.ts';

it.each([
  [-3, '0 s'],
  [59.9, '59 s'],
  [60, '1 min'],
  [3599, '59 min'],
  [3600, '1 h 0 min'],
  [86_399, '23 h 59 min'],
  [86_400, '1 d 0 h'],
  [3661, '1 h 1 min'],
  [90_000, '1 d 1 h'],
])('durationText prints %d seconds as %s', (seconds, text) => expect(durationText(seconds)).toBe(text));

it('jobsText lists hosts one by one and shortens long lists', () => {
  const hosts = Array.from({ length: 20 }, (_, index) => ({
    name: `node${index + 1}`,
    ranks: [2 * index, 2 * index + 1],
  }));
  const job = {
    schemaVersion: 1 as const,
    jobId: 'ab',
    pid: 7,
    startedAt: 0,
    programs: [['./app', '--lr', '1']],
    hosts,
  };
  const lines = jobsText([job], 61_000).trimEnd().split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'job ab: 40 ranks on 20 hosts, for 1 min, process 7',
    '  ./app --lr 1',
    '  node1    ranks 0-1',
  ]);
  expect(lines).toHaveLength(2 + 16 + 1);
  expect(lines.at(-1)).toBe('  and 4 more: node[17-20]');
  expect(jobsText([{ ...job, hosts: hosts.slice(0, 16) }], 61_000)).not.toContain('more');
});

it('jobsText reports that there is no job', () =>
  expect(jobsText([], 0)).toBe('no job of yours runs from this machine\n'));
