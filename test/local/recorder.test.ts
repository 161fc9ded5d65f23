/** What ranks did last is in the report of a job that failed or hung, and ncclrun replay shows it. */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { replayedCommunicators } from '../../launcher/replay/operations.ts';
import { pageData, pageOf } from '../../launcher/replay/page-data.ts';
import { readReplay } from '../../launcher/replay/read-file.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { entryOf } from '../rig/recorded.ts';
import { recordedRank, recordedReplay } from '../rig/replayed.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { Steering } from '../rig/steering.ts';

/** null: there is one. */
const noBrowser = spawnSync('chromium', ['--version']).status === 0 ? null : 'there is no Chromium';
const directory = mkdtempSync(join(tmpdir(), 'ncclrun-recorder-'));
beforeAll(buildStandIn);
afterAll(() => rmSync(directory, { recursive: true }));

/** Three ranks that have ended an operation; the first and the last are in the next. */
async function oneDoesNotCome(steering: Steering) {
  const ranks = await steering.ranks(3);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  const [first, second, third] = ranks;
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are three');
  return { ranks, second, waiting: [first.allReduce(1, 2), third.allReduce(1, 2)] };
}

async function replayed(...words: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['replay', ...words]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

it('replay names the rank that did not come when a hang ended the job', async () => {
  const report = join(directory, 'hang.json');
  await using steering = await Steering.open();
  const options = ['--on-hang', 'abort', '--hang-after', '0.5', '--report', report];
  await using command = Command.start([...options, '-n', '3', ...steering.options, steering.program]);
  const { waiting } = await oneDoesNotCome(steering);
  await Promise.allSettled(waiting);
  expect((await command.outcome).status).toBe(124);
  const text = await replayed(report);
  expect(text).toMatch(/^communicator [0-9a-f]{16}, 3 ranks, recorded by 0-2$/m);
  expect(text).toMatch(
    /^ {2}1 +allReduce \w+ sum +\d+ +0\.000000 +\+\d+\.\.\+\d+ +\+\d+\.\.\+\d+ +\+\d+\.\.\+\d+ +[012] +-$/m,
  );
  expect(text).toMatch(/^ {2}2 +allReduce \w+ sum +8 .* \+\d+\.\.(?:\+\d+ failed)? for [12] .*missing .* 1$/m);
  const own = await replayed(report, '--rank', '0', '--last', '1');
  expect(own).toMatch(/1 earlier operations are not shown/);
  expect(own).toMatch(/^ {2}2 +allReduce/m);
});

it('the operations of a rank that was killed are in the report', async () => {
  const report = join(directory, 'killed.json');
  await using steering = await Steering.open();
  await using command = Command.start([
    '--report',
    report,
    '--record',
    'all',
    '-n',
    '3',
    ...steering.options,
    steering.program,
  ]);
  const { ranks, second, waiting } = await oneDoesNotCome(steering);
  process.kill(second.pid, 'SIGKILL');
  await Promise.allSettled(waiting);
  for (const rank of ranks) if (rank !== second) void rank.exit(0);
  expect((await command.outcome).status).toBe(137);
  const text = await replayed(report);
  expect(text).toMatch(/recorded by 0-2$/m);
  expect(text).toMatch(/^ {2}2 +allReduce .* missing .* 1$/m);
  const trace = join(directory, 'trace.json');
  expect(await replayed(report, '--perfetto', trace)).toMatch(/^wrote .*trace\.json: open it/);
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8'));
  const named = traceEvents
    .filter(({ ph }: { ph: string }) => ph === 'M')
    .map(({ args }: { args: { name: string } }) => args.name);
  expect(named.filter((name: string | undefined) => name !== undefined)).toEqual([
    'localhost',
    'rank 0',
    'rank 1',
    'rank 2',
  ]);
  const slices = traceEvents
    .filter(({ ph, cat }: { ph: string; cat: string }) => ph === 'X' && cat === 'operation')
    .map(({ tid }: { tid: number }) => tid);
  expect(slices.toSorted()).toEqual([1, 1, 2, 3, 3]);
});

it('dump writes what the ranks of a running job have recorded, and the job goes on', async () => {
  const file = join(directory, 'now.json');
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '3', ...steering.options, steering.program]);
  const { ranks, second, waiting } = await oneDoesNotCome(steering);
  const dumped = await Command.run(['dump', `${command.pid}`, '-o', file]);
  expect(dumped).toMatchObject({ status: 0, stdout: `wrote ${file}: ncclrun replay ${file} shows it\n` });
  expect(await replayed(file)).toMatch(/^ {2}2 +allReduce .* missing .* 1$/m);
  expect(await second.allReduce(1, 2)).toEqual([3, 6]);
  await Promise.all(waiting);
  await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
  for (const rank of ranks) void rank.exit(0);
  expect((await command.outcome).status).toBe(0);
});

it('operations of ranks on GPUs are in the report of a job that timed out, with the times of their kernels', async () => {
  const report = join(directory, 'gpu.json');
  // Each size is waited for, so that the program is never far ahead of its GPU.
  const options = ['--device', 'cuda', '-b', '8', '-e', '256M', '--iters', '20', '--timeout', '3'];
  const environment = { ...standInEnvironment, ...ownKernels };
  const words = ['perf', 'all_reduce', '-n', '2', ...options, '--report', report];
  expect(await Command.run(words, { environment })).toMatchObject({ status: 124 });
  const { ranks } = readReplay(report);
  for (const { gpuErrorNs, entries } of ranks) {
    expect(gpuErrorNs).toBeGreaterThan(0);
    const ended = entries.filter(({ endedNs }) => endedNs !== 0);
    for (const { enqueuedNs, startedNs, endedNs } of ended)
      expect([enqueuedNs, startedNs, endedNs]).toEqual([enqueuedNs, startedNs, endedNs].toSorted((a, b) => a - b));
  }
  expect(ranks.some(({ entries }) => entries.some(({ startedNs }) => startedNs !== 0))).toBe(true);
});

it('replay writes a page that holds all it needs, and replaces names of hosts', async () => {
  const report = join(directory, 'page.json');
  await using steering = await Steering.open();
  await using command = Command.start(['--report', report, '-n', '3', ...steering.options, steering.program]);
  const { ranks, second, waiting } = await oneDoesNotCome(steering);
  process.kill(second.pid, 'SIGKILL');
  await Promise.allSettled(waiting);
  for (const rank of ranks) if (rank !== second) void rank.exit(0);
  expect((await command.outcome).status).toBe(137);
  const page = join(directory, 'page.html');
  expect(await replayed(report, '--html', page, '--redact')).toBe(`wrote ${page}: open it in a browser\n`);
  const text = readFileSync(page, 'utf8');
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text) ?? [];
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+';/);
  const [, script = ''] = /<script>(.*)<\/script>/s.exec(text) ?? [];
  const [, style = ''] = /<style>(.*)<\/style>/s.exec(text) ?? [];
  for (const part of [script, style]) expect(policy).toContain(createHash('sha256').update(part).digest('base64'));
  expect(text).not.toMatch(/(?:src|href)=|https?:|localhost|import\(|eval\(/);
  expect(text.length).toBeLessThan(300_000);
  expect(text).toContain('died of SIGKILL');
});

describeIf(noBrowser, 'the page in a browser', () => {
  it('Chromium shows what the page holds, without a network', async () => {
    const rank = recordedRank(0, [entryOf(1), entryOf(2, { endedNs: 0 })], { host: 'node<b>1' });
    const replay = recordedReplay([rank, recordedRank(1, [entryOf(1)])], {
      name: '</script><script>alert(1)</script>',
    });
    const template = readFileSync(join(repository, 'dist/bundle/replay.html'), 'utf8');
    const path = join(directory, 'browser.html');
    const data = pageData(replay, replayedCommunicators(replay), { redact: false });
    writeFileSync(path, pageOf(template, data));
    const options = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(directory, 'profile')}`];
    const { stdout } = await promisify(execFile)('chromium', [
      ...options,
      '--virtual-time-budget=5000',
      '--dump-dom',
      `file://${path}`,
    ]);
    expect(stdout).toContain('2 ranks on 2 hosts, read at 1970-01-01');
    expect(stdout).toContain('<td class="wide">&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</td>');
    expect(stdout).toContain('node&lt;b&gt;1');
    expect(stdout).toMatch(/aria-label="Timeline of [^"]*: a table below has the same"/);
    expect(stdout).toContain('<td class="bad number">1</td>'); // an operation to which rank 1 did not come
    expect(stdout).not.toContain('<div class="card">This page');
  }, 120_000);
});

it.each([
  [['replay'], 'replay needs one file, and has 0'],
  [['replay', '/nowhere.json'], '/nowhere.json cannot be read'],
  [['replay', join(import.meta.dirname, '../../package.json')], 'cannot be read'],
  [['dump', 'nosuchjob'], 'no running job of yours on this machine is called "nosuchjob"'],
])('the launcher refuses %s with a sentence', async (words, sentence) => {
  const { status, stderr } = await Command.run(words);
  expect(status).toBe(2);
  expect(stderr).toContain(sentence);
});
