/** The result object, the report, the event file: what scripts read. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-result-'));
});
afterAll(() => rm(directory, { recursive: true }));

it("--json prints only the result to stdout and the ranks' stdout to stderr", async () => {
  const result = await Command.result(['-n', '2', 'sh', '-c', 'echo said by $RANK']);
  expect(result).toMatchObject({ ok: true, reason: 'ok', exitCode: 0, failures: [] });
  expect(result.outcome.stderr.split('\n').toSorted()).toEqual(['', '[0] said by 0', '[1] said by 1']);
});

it('the result contains host, pid, exit status and times of every rank', async () => {
  const before = Date.now();
  const result = await Command.result(['-n', '3', '/bin/true']);
  const after = Date.now();
  expect(result.ranks.map((rank) => rank.rank)).toEqual([0, 1, 2]);
  expect(new Set(result.ranks.map((rank) => rank.pid)).size).toBe(3);
  for (const rank of result.ranks) {
    expect(rank).toMatchObject({ exitCode: 0, signal: null, endedByUs: false, host: result.hosts[0]?.name });
    const [started, ended] = [Date.parse(rank.startedAt ?? ''), Date.parse(rank.endedAt ?? '')];
    expect(started).toBeGreaterThanOrEqual(before - 1);
    expect(ended).toBeGreaterThanOrEqual(started);
    expect(ended).toBeLessThanOrEqual(after + 1);
  }
  expect(result.hosts).toEqual([{ name: result.hosts[0]?.name, ranks: [0, 1, 2], state: 'ok' }]);
});

it('--report writes the result to a file beside the text output', async () => {
  const file = join(directory, 'report.json');
  const { status, stdout } = await Command.run(['-n', '2', '--report', file, 'sh', '-c', 'echo out; exit 4']);
  expect(status).toBe(4);
  expect(stdout).toMatch(/\] out\n/);
  expect(parseResult(await readFile(file, 'utf8'))).toMatchObject({ exitCode: 4, reason: 'rank-exit' });
});

it('each job has a jobId of its own', async () => {
  const [first, second] = await Promise.all([
    Command.result(['-n', '1', '/bin/true']),
    Command.result(['-n', '1', '/bin/true']),
  ]);
  expect(first.jobId).not.toBe(second.jobId);
});

it('--json prints a result for a rejected allocation', async () => {
  const result = await Command.result(['-H', 'localhost:1', '-n', '2', '/bin/true']);
  expect(result).toMatchObject({ ok: false, reason: 'allocation', exitCode: 2 });
});

it.each([
  [['--hostfle', 'x', '--json', '/bin/true']],
  [['-n', 'two', '--json', '/bin/true']],
  [['--json', '--events', '/no/such/directory/events', '/bin/true']],
  [['--json', '-n', '2', '/bin/true', ':']],
  [['--json']],
  [['perf', 'all_reduce', '-d', 'nosuch', '--json']],
])('--json prints a result for the invalid command line %j', async (argv) => {
  const { status, stdout, stderr } = await Command.run(argv);
  const result: unknown = JSON.parse(stdout);
  expect(result).toMatchObject({ schemaVersion: 1, ok: false, reason: 'usage', exitCode: 2 });
  expect(result).toMatchObject({ failures: [{ type: 'usage' }] });
  expect(result).toMatchObject(argv[0] === 'perf' ? { rows: [] } : { jobId: '', hosts: [], ranks: [] });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^ncclrun: /);
});

it('--json prints a result for invalid settings only if it precedes the program', async () => {
  await writeFile(join(directory, 'ncclrun.json'), '{"nq": 4}');
  const wrong = await Command.run(['--json', '/bin/true'], { directory });
  expect(parseResult(wrong.stdout)).toMatchObject({ reason: 'usage', exitCode: 2, phases: { run: 0 } });
  expect(await Command.run(['/bin/true', '--json'], { directory })).toMatchObject({ status: 2, stdout: '' });
});

it('--events writes a line of JSON per event', async () => {
  const file = join(directory, 'events.jsonl');
  await Command.run(['-n', '2', '--events', file, 'sh', '-c', 'exit $RANK']);
  const text = await readFile(file, 'utf8');
  const events = text
    .trim()
    .split('\n')
    .map((line): Record<string, unknown> => JSON.parse(line));
  expect(events.every((event) => event['schemaVersion'] === 1 && Number.isInteger(event['time']))).toBe(true);
  const types = events.map((event) => event['type']);
  expect(types[0]).toBe('job-started');
  expect(types.at(-1)).toBe('job-ended');
  expect(types.filter((type) => type === 'rank-started')).toHaveLength(2);
  expect(types).toContain('failure');
});

it.each([
  ['--events', 0, 125],
  ['--events', 3, 3],
  ['--report', 0, 125],
  ['--report', 3, 3],
])('%s on a full disk leaves the result intact and reports the error (rank status %i)', async (flag, own, status) => {
  const outcome = await Command.run(['--json', flag, '/dev/full', '-n', '1', 'sh', '-c', `exit ${own}`]);
  expect(parseResult(outcome.stdout)).toMatchObject({ exitCode: own });
  expect(outcome.stderr).toContain(`ncclrun: cannot write the output: ${flag} /dev/full: ENOSPC`);
  expect(outcome.stderr).not.toContain('internal');
  expect(outcome.status).toBe(status);
});
