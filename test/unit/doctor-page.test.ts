/** The page of `ncclrun doctor --html`. */
import { describe, expect, it } from 'vitest';
import { allChecks } from '../../launcher/doctor/checks/all.ts';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { doctorPage } from '../../launcher/doctor/page.ts';
import { groupOf } from '../../launcher/doctor/page-hosts.ts';
import type { MeasuredWay } from '../../launcher/doctor/pairs.ts';
import { runChecks } from '../../launcher/doctor/run-checks.ts';
import type { Examined } from '../../launcher/doctor/verdict.ts';
import { wellHost } from '../rig/readings.ts';

const template = '<title><!--title--></title><body><!--body--></body>';
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
const machine = (name: string) => ({
  name,
  readings: wellHost({ system: { ...wellHost().system, machineName: name } }),
});
const read = [machine('h1'), machine('h2'), machine('h3')];

function pageOf(more: readonly Finding[], ways: readonly MeasuredWay[] = []): string {
  const found: Examined = {
    takenAt: 0,
    hosts: ['h1', 'h2', 'h3'],
    read,
    findings: [...runChecks(allChecks, read), ...more],
    ways,
  };
  return doctorPage(template, { found, seconds: 2.5, since: null });
}

const bad: Finding = {
  check: 'files.hang',
  answer: 'fail',
  host: 'h2',
  subject: '/data',
  message: 'does not <answer>',
  remedy: 'see "its" server & \u001b[31m',
};

describe('the page', () => {
  it('hosts that are well have a page that says so', () => {
    const page = pageOf([]);
    expect(page).toContain('<title>ncclrun doctor, 3 hosts, 1970-01-01 00:00 UTC</title>');
    expect(page).toContain('Nothing is wrong.');
    expect(page).not.toMatch(/class="(tag )?(fail|warn)"/u);
    expect(page).not.toContain('Between hosts');
  });

  it('a finding stands in the list with its remedy, and in the row of its host, and its text is escaped', () => {
    const page = pageOf([bad, { ...bad, host: null, subject: 'h1 to h2' }]);
    expect(page).toContain('<p>h2 /data: does not &lt;answer&gt;</p><p class="next">see &quot;its&quot; server &amp; ');
    expect(page).toMatch(/<th scope="row">h2<\/th>(?:(?!<\/tr>).)*<td class="fail" title="files\.hang \/data does/su);
    expect(page).toContain('<th scope="row">several hosts</th>');
    expect(page).not.toContain('\u001b');
    expect(page).not.toContain('<answer>');
  });

  it('rates between hosts have a cell each, by how they compare', () => {
    const ways = [
      way('h1', 'h2', { rate: 1 }),
      way('h2', 'h1', { rate: 7 }),
      way('h2', 'h3'),
      way('h3', 'h2', { lost: 0.01 }),
      way('h1', 'h3', { rate: null, error: 'no route' }),
      way('h3', 'h1'),
    ];
    const page = pageOf([], ways);
    const classOf = (text: string) =>
      new RegExp(`class="(?:number )?(\\w+)" title="[^"]*">${text}<`, 'u').exec(page)?.[1];
    expect([classOf('1.00'), classOf('7.00'), classOf('failed')]).toEqual(['fail', 'warn', 'fail']);
    expect(page.match(/class="number ok"/gu)).toHaveLength(2);
    expect(page).toContain('1 % of the packets sent again');
    expect(page).toContain('title="no route"');
  });

  it('the slowest pairs stand for many hosts', () => {
    const ways = Array.from({ length: 100 }, (_, index) => way(`s${index}`, `r${index}`, { rate: 10 + index }));
    const page = pageOf([], ways);
    expect(page).toContain('The 64 hosts with the slowest paths of 200 are shown.');
    expect(page).toContain('>s31<');
    expect(page).not.toContain('>s32<');
  });

  it('what has changed has a table', () => {
    const found: Examined = { takenAt: 0, hosts: [], read: [], findings: [], ways: [] };
    const changes = [{ kind: 'grew', host: '<h>', message: 'errors' } as const];
    const page = doctorPage(template, { found, seconds: 1, since: { takenAt: 0, changes } });
    expect(page).toContain('<td class="warn">grew</td><td>&lt;h&gt;</td><td>errors</td>');
    const none = doctorPage(template, { found, seconds: 1, since: { takenAt: 0, changes: [] } });
    expect(none).toContain('Nothing has changed.');
  });

  it('every check has a group', () => {
    const groups = new Set(allChecks.map(({ id }) => groupOf(id)));
    expect(groups).toContain('GPUs');
    expect(groupOf('host.reached')).toBe('reach');
    for (const { id } of allChecks)
      if (!/^(environment|slurm)\./u.test(id)) expect(groupOf(id), id).not.toBe('environment');
  });
});
