/** Jobs on this machine inside the test's process: their reports, and refusals before them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../launcher/cli/commands/run.ts';
import { captured } from '../rig/captured.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-launched-'));
afterAll(() => rmSync(directory, { recursive: true }));
beforeEach(() => {
  vi.stubEnv('XDG_CONFIG_HOME', join(directory, 'none'));
  vi.stubEnv('NO_COLOR', '1');
});
afterEach(() => void vi.unstubAllEnvs());

const launched = (words: string) => captured(() => run(['--stdin', 'none', ...words.split(' ')]));
const read = (name: string) => readFileSync(join(directory, name), 'utf8');

describe('a job on this machine', () => {
  it('its output, and the status of its ranks', async () => {
    expect(await launched('-n 1 sh -c echo')).toEqual({ status: 0, stdout: '\n', stderr: '' });
    const failed = await launched('-n 2 false');
    expect(failed.status).toBe(1);
    expect(failed.stderr).toMatch(/^ncclrun: rank [01] on localhost \(pid [0-9]+\) exited with status 1\n/u);
  });

  it('--json, --report, --events and --output write what they are for', async () => {
    const files = `--report ${directory}/report --events ${directory}/events --output file=${directory}/all`;
    const { status, stdout, stderr } = await launched(`--json ${files} -n 2 echo hello`);
    expect(status).toBe(0);
    expect(stderr.split('\n').toSorted()).toEqual(['', '[0] hello', '[1] hello']);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, exitCode: 0, ranks: [{ rank: 0 }, { rank: 1 }] });
    expect(JSON.parse(read('report'))).toEqual(JSON.parse(stdout));
    expect(read('all').split('\n').toSorted()).toEqual(['', '[0] hello', '[1] hello']);
    const events = read('events').trimEnd().split('\n');
    expect([JSON.parse(events[0] ?? ''), JSON.parse(events.at(-1) ?? '')]).toMatchObject([
      { type: 'job-started', ranks: 2 },
      { type: 'job-ended', ok: true },
    ]);
  });

  it('a job without --json prints the output of its rank alone', async () => {
    const { stdout } = await launched('-n 1 echo hello');
    expect(stdout).toBe('hello\n');
  });

  it('a file that cannot be written is refused before the job', async () => {
    await expect(launched(`--events ${directory} -n 1 echo started`)).rejects.toMatchObject({
      failure: {
        type: 'usage',
        message: expect.stringMatching(/^--events \S+ cannot be written: EISDIR/u),
        remedy: 'name a file in a directory you may write to',
      },
    });
  });

  it('a failure before there is a job is a result like every other', async () => {
    const { status, stdout, stderr } = await launched('--json -n 3 -H localhost:2 true');
    expect([status, stderr]).toEqual([2, expect.stringContaining('ncclrun: 3 ranks asked for, but there are 2 slots')]);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, reason: 'allocation', jobId: '' });
  });

  it('--events begins with what stderr has shown of settings that are not obeyed', async () => {
    const config = join(directory, 'refusing');
    mkdirSync(join(config, 'ncclrun/config.json'), { recursive: true });
    vi.stubEnv('XDG_CONFIG_HOME', config);
    const { status, stderr } = await launched(`--events ${directory}/noted -n 1 true`);
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(/ignored \S*config\.json: it is not a regular file/u),
    });
    expect(JSON.parse(read('noted').split('\n')[0] ?? '')).toMatchObject({
      type: 'notice',
      message: expect.stringMatching(/ignored \S*config\.json: it is not a regular file/u),
    });
  });

  it('a task of srun starts no job, and a batch script does', async () => {
    for (const [name, value] of Object.entries({ SLURM_JOB_ID: '7', SLURM_PROCID: '2', SLURM_STEP_NUM_TASKS: '4' }))
      vi.stubEnv(name, value);
    vi.stubEnv('NCCLRUN_JOB_ID', undefined);
    await expect(launched('-n 1 -H localhost:1 true')).rejects.toMatchObject({
      failure: { type: 'usage', message: expect.stringMatching(/^this is task 2 of 4 that srun has started/u) },
    });
    vi.stubEnv('SLURM_PROCID', '0');
    vi.stubEnv('SLURM_STEP_NUM_TASKS', '1');
    expect((await launched('-n 1 -H localhost:1 true')).status).toBe(0);
  });

  it('a report that cannot be written is refused before the job', async () => {
    await expect(launched(`--report ${directory} -n 1 echo started`)).rejects.toMatchObject({
      failure: { type: 'usage', message: expect.stringMatching(/^--report \S+ cannot be written: EISDIR/u) },
    });
  });

  it('--verbose prints events', async () => {
    expect((await launched('--verbose -n 1 true')).stderr).toContain('ncclrun: phase: run\n');
  });
});
