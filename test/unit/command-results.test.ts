/** Commands beside their jobs: results without a job, what perf would run, running jobs, and topology files that cannot be read. */
import { chmodSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { build } from '../../launcher/cli/commands/build.ts';
import { bundle } from '../../launcher/cli/commands/bundle.ts';
import { dump } from '../../launcher/cli/commands/dump.ts';
import { perf } from '../../launcher/cli/commands/perf.ts';
import { prefix } from '../../launcher/cli/commands/prefix.ts';
import { ps } from '../../launcher/cli/commands/ps.ts';
import { topo } from '../../launcher/cli/commands/topo.ts';
import { printRefused, resultWithoutJob } from '../../launcher/cli/refused.ts';
import { runningJobs } from '../../launcher/jobs/find.ts';
import { FollowServer } from '../../launcher/jobs/follow-server.ts';
import { JobNote } from '../../launcher/jobs/note.ts';
import { jobsText } from '../../launcher/jobs/text.ts';
import { libraryPath } from '../../launcher/local/host.ts';
import type { JobEvent } from '../../launcher/model/event.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import type { RankMap } from '../../launcher/model/types.ts';
import { readUserGraphsFile } from '../../launcher/topology/file.ts';
import { captured, refusal } from '../rig/captured.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { plainReporter } from '../rig/plain-reporter.ts';
import { failureFrom } from './failure-from.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-command-results-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

describe('a command that never came to a job', () => {
  const failure: Failure = { type: 'usage', message: 'm', remedy: null };
  const printed = async (command: 'run' | 'perf', words: string) => {
    const { streams, seen } = plainReporter();
    await printRefused(failure, command, words.split(' '), streams.stdout);
    await streams.stdout.flush();
    return seen.stdout;
  };

  it('its result has the failure and nothing else', () => {
    expect(resultWithoutJob(failure)).toEqual({
      schemaVersion: 1,
      jobId: '',
      ok: false,
      reason: 'usage',
      restarts: 0,
      exitCode: 2,
      failures: [failure],
      verdicts: [],
      hosts: [],
      ranks: [],
      phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
    });
  });

  it('the result is printed where --json asks for it, as the command has it', async () => {
    expect([await printed('run', '-n 2 x --json'), await printed('perf', 'all_reduce')]).toEqual(['', '']);
    expect(JSON.parse(await printed('run', '--json x'))).toMatchObject({
      schemaVersion: 1,
      jobId: '',
      phases: { run: 0 },
    });
    expect(JSON.parse(await printed('perf', 'all_reduce --json'))).toMatchObject({
      collective: null,
      rows: [],
      reason: 'usage',
    });
  });
});

describe('ncclrun perf', () => {
  it.each([
    [
      'all_reduce -n 2',
      '--begin 8 --end 67108864 --factor 2 --iters 20 --warmup 5 --blocking 0 --check 0 --root 0 --type float --op sum --device auto',
    ],
    [
      'all_gather -n 2 -b 8 -e 8 -z --check --iters 3 -d half',
      '--begin 8 --end 8 --factor 2 --iters 3 --warmup 5 --blocking 1 --check 1 --root 0 --type half --op sum --device auto',
    ],
  ])('"ncclrun perf %s" would run the measuring program', async (words, expected) => {
    vi.stubEnv('XDG_CONFIG_HOME', directory);
    for (const option of ['--dry-run', '--explain']) {
      const { status, stdout } = await captured(() => perf([...words.split(' '), option]));
      const [command = ''] = stdout.split('\n');
      expect([status, command.split(/ all_\w+ /u)[1]?.replaceAll("''", '')]).toEqual([0, expected]);
    }
  });

  it.each([
    ['', 'no collective given; write: ncclrun perf COLLECTIVE|net [options]'],
    ['all_reduce -b 8 -e 7', '-e 7 is less than -b 8; sizes go from -b up to -e'],
    ['all_reduc', 'unknown collective "all_reduc"; did you mean all_reduce?'],
  ])('"ncclrun perf %s" is refused', async (words, message) => {
    vi.stubEnv('XDG_CONFIG_HOME', directory);
    expect(await refusal(() => perf(words.split(' ').filter(Boolean)))).toBe(message);
  });
});

const started = (jobId: string, time: number): JobEvent => ({
  time,
  type: 'job-started',
  jobId,
  ranks: 3,
  hosts: ['a', 'b'],
  programs: [['p', 'x']],
});

const own = () =>
  runningJobs()
    .filter(({ pid }) => pid === process.pid)
    .map(({ jobId, hosts }) => [jobId, hosts.map(({ name, ranks }) => `${name}:${ranks.join()}`).join(' ')]);

const hosts = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `n${index}x${index}`, ranks: [index] }));

const text = (count: number, seconds = 0) =>
  jobsText(
    [{ schemaVersion: 1, jobId: 'j', startedAt: 0, programs: [['p']], pid: 1, hosts: hosts(count) }],
    seconds * 1000,
  );

it('ncclrun dump writes what the ranks have recorded into a file, and names it', async () => {
  const recorder = { schemaVersion: 1, takenAt: 3, hosts: [], communicators: [], ranks: [], omitted: 0 } as const;
  const server = await FollowServer.open('dumped', {
    look: { tagOutput: 'auto', timestampOutput: false, onHang: 'report' },
    keptNow: () => null,
    recorderNow: () => Promise.resolve(recorder),
    stacksNow: () => Promise.resolve(null),
    statusNow: () => Promise.resolve(null),
  });
  if (server === null) throw new Error('no server');
  const note = new JobNote();
  note.event(started('dumped', 5));
  note.serves(server.place);
  onTestFinished(async () => {
    await server.close(null);
    await note.result();
  });
  const file = join(directory, 'dumped.json');
  const { status, stdout } = await captured(() => dump(['dumped', '-o', file]));
  expect({ status, stdout }).toEqual({ status: 0, stdout: `wrote ${file}: ncclrun replay ${file} shows it\n` });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ schemaVersion: 1, jobId: 'dumped', recorder });
  expect(await refusal(() => dump(['dumped', '-o', join(directory, 'none/x')]))).toMatch(
    /none\/x cannot be written: .*; name a file in a directory you may write to$/,
  );
});

describe('ncclrun ps', () => {
  const map: RankMap = {
    hosts: [hostNamed('a'), hostNamed('b')],
    ranks: [0, 1, 2].map((rank) => ({
      rank,
      host: rank === 1 ? 1 : 0,
      program: 0,
      localRank: 0,
      localSize: 1,
      numa: null,
      gpu: null,
    })),
  };

  it('a job is found from its start to its result, with the hosts of its last attempt', async () => {
    const note = new JobNote();
    await note.prepare(map);
    expect(own()).toEqual([]);
    note.event({
      time: 0,
      type: 'restart',
      attempt: 1,
      limit: 1,
      failure: { type: 'timeout', seconds: 1 },
      hosts: ['x'],
    });
    expect(own()).toEqual([]);
    note.event(started('j1', 5));
    expect(own()).toEqual([['j1', 'a:0,2 b:1']]);
    note.event({
      time: 0,
      type: 'restart',
      attempt: 1,
      limit: 1,
      failure: { type: 'timeout', seconds: 1 },
      hosts: ['a', 'c'],
    });
    note.event({ time: 0, type: 'notice', message: 'm' });
    expect(own()).toEqual([['j1', 'a:0,2 c:1']]);
    const { stdout } = await captured(() => ps([]));
    expect(stdout).toContain('job j1: 3 ranks on 2 hosts, for ');
    const document: { jobs: { jobId: string }[] } = JSON.parse((await captured(() => ps(['--json']))).stdout);
    expect(document.jobs.map(({ jobId }) => jobId)).toContain('j1');
    await note.result();
    expect(own()).toEqual([]);
  });

  it('the text has one line for each of 16 hosts', () => {
    expect(text(1)).toBe('job j: 1 rank on 1 host, for 0 s, process 1\n  p\n  n0x0   rank 0\n');
    expect([text(16), text(17)].map((all) => all.split('\n').length)).toEqual([19, 20]);
    expect(text(17)).toContain('\n  and 1 more: n16x16\n');
    expect([60, 3600, 86_399, 86_400].map((seconds) => /for (.*), process/u.exec(text(1, seconds))?.[1])).toEqual([
      '1 min',
      '1 h 0 min',
      '23 h 59 min',
      '1 d 0 h',
    ]);
  });
});

describe('a topology file', () => {
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const unreadable = file('closed', '');
  chmodSync(unreadable, 0);
  const wanted = 'name a topology file, such as NCCL writes with NCCL_TOPO_DUMP_FILE=FILE';

  it.each<[string, string]>([
    [join(directory, 'none'), `there is no file ${join(directory, 'none')}; ${wanted}`],
    [directory, `${directory} is a directory; ${wanted}`],
    ['/dev/zero', '/dev/zero is no topology: it is too large; name a file in NCCL’s XML'],
    [file('x/..y'.replace('/', '_'), '<system'), 'NCCL_TOPO_DUMP_FILE=FILE'],
  ])('%s is refused', async (path, message) => {
    expect(await refusal(() => topo(['--from', path]))).toContain(message);
  });

  it('a long complaint is cut', async () => {
    const complaint = await refusal(() => topo(['--from', file('long', `<${'x'.repeat(2000)}>`)]));
    expect(complaint.split('; correct it there')[0]?.length).toBe(301);
  });

  it('one of graphs is named with its variable', () => {
    const failure = failureFrom(() => readUserGraphsFile('NCCL_GRAPH_FILE', join(directory, 'none')));
    expect(failure).toMatchObject({
      type: 'usage',
      message: `NCCL_GRAPH_FILE: there is no file ${join(directory, 'none')}`,
      remedy: 'correct the file, or unset NCCL_GRAPH_FILE',
    });
  });
});

const made = async () => (await captured(() => prefix([]))).stdout.trimEnd();

describe('ncclrun prefix', () => {
  it('the directory is whole, and made anew where it is not', async () => {
    const path = await made();
    const library = join(path, 'lib/libnccl.so');
    expect(readlinkSync(library)).toBe(libraryPath);
    rmSync(library);
    symlinkSync('/dev/null', library);
    expect([await made(), readlinkSync(library)]).toEqual([path, libraryPath]);
    rmSync(library);
    expect([await made(), readlinkSync(library)]).toEqual([path, libraryPath]);
    writeFileSync(join(path, 'lib/pkgconfig/nccl.pc'), 'other');
    writeFileSync(join(path, 'extra'), '');
    expect(await made()).toBe(path);
    expect(() => readlinkSync(join(path, 'extra'))).toThrow('ENOENT');
    writeFileSync(join(path, 'extra'), '');
    expect(await made()).toBe(path);
    expect(() => readlinkSync(join(path, 'extra'))).toThrow('EINVAL');
    rmSync(join(path, 'extra'));
  });
});

it.each<[string, (argv: readonly string[]) => Promise<number>]>([
  ['build', build],
  ['bundle', bundle],
  ['perf', perf],
  ['prefix', prefix],
  ['topo', topo],
])('%s --help prints its usage', async (name, command) => {
  const { status, stdout } = await captured(() => command(['--help']));
  expect([status, stdout]).toEqual([0, expect.stringMatching(new RegExp(`^usage: ncclrun ${name}\\b`, 'mu'))]);
});
