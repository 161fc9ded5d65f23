/** A batch on a Slurm that is played: what is submitted, what is asked for, and what is written down. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BatchSpec } from '../../launcher/batch/model/spec.ts';
import type { SlurmEvent } from '../../launcher/batch/slurm/event.ts';
import { openSlurm } from '../../launcher/batch/slurm/open.ts';
import { dryRunText } from '../../launcher/batch/slurm/script/dry-run.ts';
import { SlurmBatch } from '../../launcher/batch/slurm/slurm-batch.ts';
import { BatchDirectory } from '../../launcher/batch/state/directory.ts';
import { after, arrayOf, batchSpec, jobSpec } from '../rig/batch-spec.ts';
import { expectText } from '../rig/expected.ts';
import { PlayedSlurm, refused, unclear } from '../rig/slurm-answers.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ncclrun-batch-slurm-'));
  mkdirSync(join(root, 'b-1'));
});
afterEach(() => rmSync(root, { recursive: true }));

interface Opened {
  readonly batch: SlurmBatch;
  readonly events: SlurmEvent[];
  readonly said: string[];
}

/** `spec` null: goes on with what is on the disk. */
function opened(slurm: PlayedSlurm, spec: BatchSpec | null): Opened {
  const directory = new BatchDirectory(root, 'b-1');
  const { store, pieces } = openSlurm(directory);
  const events: SlurmEvent[] = [];
  const said: string[] = [];
  const batch = new SlurmBatch({
    directory,
    facts: { schemaVersion: 1, key: 'ab12', maxArraySize: 1001, command: '/opt/ncclrun' },
    store,
    pieces,
    tool: slurm.tool,
    now: () => 1000,
    pause: async () => {},
    jobOf: () => jobSpec('more', { workingDirectory: root }),
    emit: (event) => void events.push(event),
    say: (text) => void said.push(text),
  });
  if (spec !== null)
    pieces.together(() => {
      store.submit({ id: 'b-1', file: 'f.yaml', spec, createdAt: 1 });
      batch.plan();
    });
  return { batch, events, said };
}

const two = () =>
  batchSpec([
    jobSpec('a', { workingDirectory: root }),
    jobSpec('b', { dependencies: [after('a')], workingDirectory: root }),
  ]);
const submissions = (slurm: PlayedSlurm) => slurm.calls.filter((call) => call.startsWith('sbatch'));
const statesOf = async ({ batch }: Opened): Promise<readonly string[]> => {
  const answer = await batch.answer({ asks: 'status' }, null);
  return answer.answer === 'status' ? answer.status.tasks.map(({ state }) => state) : [];
};

describe('a submission', () => {
  it('ncclrun submits every job held and releases all of them at the end', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(slurm, two());
    await one.batch.submit(true);
    expect(submissions(slurm)).toEqual([
      'sbatch --parsable --hold --job-name=b-1.a.1-ab12',
      'sbatch --parsable --hold --job-name=b-1.b.2-ab12 --dependency=afterok:1 --kill-on-invalid-dep=yes',
    ]);
    expect(slurm.calls.at(-1)).toBe('scontrol release 1,2');
    one.batch.close();
  });

  it('ncclrun finds a job by its name whose answer was lost', async () => {
    const slurm = new PlayedSlurm();
    slurm.sbatch.push('lost', unclear('Unable to contact slurm controller'), 'usual');
    const one = opened(slurm, two());
    await one.batch.submit(true);
    expect(slurm.jobs.map(({ name, held }) => [name, held])).toEqual([
      ['b-1.a.1-ab12', false],
      ['b-1.b.2-ab12', false],
    ]);
    expect(one.said).toHaveLength(2);
    one.batch.close();
  });

  it('the next ncclrun goes on where one was killed before it knew the number of a job', async () => {
    const slurm = new PlayedSlurm();
    opened(slurm, two()).batch.close();
    await slurm.tool('sbatch', ['--job-name=b-1.a.1-ab12']);
    const next = opened(slurm, null);
    await next.batch.submit(false);
    expect(slurm.jobs.map(({ name }) => name)).toEqual(['b-1.a.1-ab12', 'b-1.b.2-ab12']);
    next.batch.close();
  });

  it('ncclrun cancels a job that came twice, and releases the one that it knows', async () => {
    const slurm = new PlayedSlurm();
    opened(slurm, batchSpec([jobSpec('a', { workingDirectory: root })])).batch.close();
    await slurm.tool('sbatch', ['--job-name=b-1.a.1-ab12']);
    await slurm.tool('sbatch', ['--job-name=b-1.a.1-ab12']);
    const next = opened(slurm, null);
    await next.batch.submit(false);
    expect(slurm.jobs.map(({ held, state }) => [held, state])).toEqual([
      [false, 'PENDING'],
      [true, 'CANCELLED'],
    ]);
    next.batch.close();
  });

  it('ncclrun withdraws the whole batch where sbatch refuses a job', async () => {
    const slurm = new PlayedSlurm();
    slurm.sbatch.push('usual', refused('Invalid qos'));
    const one = opened(slurm, two());
    await expect(one.batch.submit(true)).rejects.toThrow('sbatch refuses b (f.yaml:1): Invalid qos');
    expect(slurm.jobs).toMatchObject([{ held: true, state: 'CANCELLED' }]);
    const { endedAt, tasks } = one.batch.close();
    expect({ endedAt, states: tasks.map(({ state }) => state) }).toEqual({
      endedAt: 1000,
      states: ['cancelled', 'failed'],
    });
  });

  it('a held job stays held when the others are released', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(
      slurm,
      batchSpec([jobSpec('a', { held: true, workingDirectory: root }), jobSpec('b', { workingDirectory: root })]),
    );
    await one.batch.submit(true);
    expect(slurm.jobs.map(({ held }) => held)).toEqual([true, false]);
    expect(await statesOf(one)).toEqual(['held', 'queued']);
    expect(await one.batch.answer({ asks: 'release', tasks: 'a' }, null)).toEqual({ answer: 'done', tasks: 1 });
    expect(slurm.jobs[0]?.held).toBe(false);
    one.batch.close();
  });
});

describe('a look at Slurm', () => {
  it('a failed task skips the tasks that depend on it, and ncclrun cancels their jobs', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(slurm, two());
    await one.batch.submit(true);
    const [a, b] = slurm.jobs;
    if (a !== undefined) a.state = 'FAILED';
    await one.batch.look();
    expect(one.events.map((event) => [event.task, event.type === 'ended' ? event.state : event.type])).toEqual([
      [0, 'failed'],
      [1, 'skipped'],
    ]);
    expect(b?.state).toBe('CANCELLED');
    expect(one.batch.isOver).toBe(true);
    one.batch.close();
  });

  it('on_failure: stop cancels what runs', async () => {
    const slurm = new PlayedSlurm();
    const jobs = [jobSpec('a', { workingDirectory: root }), jobSpec('b', { workingDirectory: root })];
    const one = opened(slurm, batchSpec(jobs, { onFailure: 'stop' }));
    await one.batch.submit(true);
    const [a, b] = slurm.jobs;
    if (a !== undefined && b !== undefined) [a.state, b.state] = ['FAILED', 'RUNNING'];
    await one.batch.look();
    expect(b?.state).toBe('CANCELLED');
    await one.batch.look();
    expect(await statesOf(one)).toEqual(['failed', 'cancelled']);
    one.batch.close();
  });

  it('tasks that run again are new jobs of Slurm, and count their attempts on', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(slurm, two());
    await one.batch.submit(true);
    const [a] = slurm.jobs;
    if (a !== undefined) a.state = 'FAILED';
    await one.batch.look();
    expect(await one.batch.answer({ asks: 'rerun', tasks: '' }, null)).toEqual({ answer: 'done', tasks: 2 });
    expect(submissions(slurm).slice(2)).toEqual([
      'sbatch --parsable --hold --job-name=b-1.a.3-ab12',
      'sbatch --parsable --hold --job-name=b-1.b.4-ab12 --dependency=afterok:3 --kill-on-invalid-dep=yes',
    ]);
    expect(await statesOf(one)).toEqual(['queued', 'queued']);
    one.batch.close();
  });

  it('one more job is one more submission', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(slurm, two());
    await one.batch.submit(true);
    expect(await one.batch.answer({ asks: 'submit', job: '{}' }, null)).toEqual({ answer: 'done', tasks: 1 });
    expect(slurm.jobs.map(({ name, held }) => [name, held]).at(-1)).toEqual(['b-1.more.3-ab12', false]);
    one.batch.close();
  });

  it('where Slurm does not answer, the status is what was known', async () => {
    const slurm = new PlayedSlurm();
    const one = opened(slurm, two());
    const answer = await one.batch.answer({ asks: 'status' }, 7);
    expect(answer).toMatchObject({
      status: { via: 'slurm', scheduler: 7, notice: expect.stringContaining('--resume b-1') },
    });
    await expect(one.batch.answer({ asks: 'release-host', host: 'h1' }, null)).rejects.toThrow(
      'Slurm decides which hosts',
    );
    one.batch.close();
  });
});

it('the script of an array is a shell script that begins each task with its own words', async () => {
  const job = jobSpec('a', {
    array: {
      tasks: [
        { index: 0, values: { lr: "it's" } },
        { index: 1, values: { lr: '2' } },
      ],
      maxParallel: 1,
      maxFails: null,
    },
    command: ['echo', '${{ array.lr }}'],
    output: 'out %x.%a.%r',
    workingDirectory: '/work',
    timeLimitSeconds: 60,
    passedEnvironment: ['TOKEN'],
  });
  const spec = batchSpec([
    job,
    jobSpec('b', { array: arrayOf(1), workingDirectory: '/work', output: 'b.%t', dependencies: [after('a', 'any')] }),
  ]);
  const { text } = dryRunText({ batch: 'b-1', spec, command: '/opt/ncclrun', maxArraySize: 1001 });
  await expectText('slurm-dry-run.sh', text);
});
