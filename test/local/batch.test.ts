/** `ncclrun batch` and its relatives with real schedulers, launchers and ranks on this machine. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BatchRig, LEDGER } from '../rig/batch.ts';
import { Command } from '../rig/command.ts';
import { alive } from '../rig/processes.ts';
import { until } from '../rig/until.ts';

let rig: BatchRig;
beforeEach(async () => {
  rig = await BatchRig.open();
});
afterEach(() => rig[Symbol.asyncDispose]());

/** A batch file with these jobs, in YAML. */
const batchOf = (...jobs: readonly string[]) =>
  [
    'version: 1',
    'name: test',
    `defaults: { output: "%x.%a.%r.out", working_dir: ${rig.directory} }`,
    'jobs:',
    ...jobs,
  ].join('\n');
/** A job that runs until the file `go` is there. */
const waitingJob = (name: string, more = '') =>
  `  - { name: ${name}, command: '${LEDGER}; until test -e ${rig.directory}/go; do sleep 0.05; done', working_dir: ${rig.directory}${more} }`;
const quickJob = (name: string, more = '') =>
  `  - { name: ${name}, command: '${LEDGER}', working_dir: ${rig.directory}${more} }`;
const go = () => writeFileSync(join(rig.directory, 'go'), '');
const started = (...words: readonly string[]) =>
  Command.start(words, { environment: rig.environment, directory: rig.directory });

describe('a batch', () => {
  it('runs each task once, after what it depends on, and says what became of them', async () => {
    const file = rig.file(
      batchOf(
        quickJob('prep'),
        quickJob('train', ', after: prep, array: { lr: [1, 2, 3] }'),
        quickJob('eval', ', after: [train]'),
        `  - { name: bad, command: '${LEDGER}; exit 3', retry: { max_retries: 1, delay: 1s }, working_dir: ${rig.directory} }`,
        quickJob('never', ', after: bad'),
      ),
    );
    const { status, stdout, stderr } = await rig.run(['batch', file]);
    expect(status).toBe(1);
    expect(rig.ledger()).toEqual(['bad 1', 'bad 2', 'eval 1', 'prep 1', 'train[0] 1', 'train[1] 1', 'train[2] 1']);
    expect(stdout).toContain('test-1 (' + file + '): ended: 7 tasks: 5 succeeded, 1 failed, 1 skipped\n');
    expect(stdout).toMatch(/^bad +failed +2 .*exited with status 3$/mu);
    expect(stdout).toMatch(/^never +skipped +bad did not succeed$/mu);
    expect(stderr).toContain('bad: attempt 1 failed: rank 0 on localhost');
    expect(stderr).toContain('ncclrun logs test-1/bad prints what bad has said');
    expect((await rig.run(['logs', 'test-1'])).stderr).toContain('test-1 is a batch');
    const json = await rig.run(['jobs', 'test-1', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ id: 'test-1', scheduler: null, tasks: { length: 7 } });
  });

  it('gives its tasks the values of their array, and each its own output', async () => {
    const file = rig.file(
      batchOf(
        `  - { name: t, command: 'echo lr \${{ array.lr }} of $NCCLRUN_TASK, rank $NCCLRUN_RANK', ntasks: 2, array: { lr: [0.5] }, working_dir: ${rig.directory} }`,
      ),
    );
    expect((await rig.run(['batch', file])).status).toBe(0);
    const output = readFileSync(join(rig.directory, 't.0.1.out'), 'utf8').trim().split('\n').toSorted();
    expect(output).toEqual(['[0] lr 0.5 of t[0], rank 0', '[1] lr 0.5 of t[0], rank 1']);
    expect((await rig.run(['logs', 'test-1/t[0]'])).stdout.trim().split('\n').toSorted()).toEqual(output);
  });

  it('tells the command of notify what became of it, as JSON', async () => {
    const notify = `notify: [/bin/sh, -c, 'cat > ${rig.directory}/told; echo told']`;
    const { status, stdout } = await rig.run(['batch', rig.file(`${notify}\n${batchOf(quickJob('a'))}`)]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('told\n') });
    const told = JSON.parse(readFileSync(join(rig.directory, 'told'), 'utf8'));
    expect(told).toMatchObject({
      id: 'test-1',
      tasks: [{ name: 'a', state: 'succeeded', hosts: [{ name: 'localhost' }] }],
    });
  });

  it('can be looked at, changed and added to while it runs', async () => {
    const file = rig.file(
      batchOf(waitingJob('first'), quickJob('second', ', after: first'), quickJob('third', ', hold: true')),
    );
    await using batch = started('batch', file);
    await until('the first task runs', () => rig.ledger().length === 1);
    expect((await rig.run(['jobs'])).stdout).toMatch(/^test-1 +running +3 /mu);
    expect((await rig.run(['jobs', 'test-1'])).stdout).toMatch(/^second +queued +after first$/mu);
    expect((await rig.run(['hold', 'test-1/second'])).stdout).toBe('1 task held\n');
    expect((await rig.run(['release', 'test-1/third'])).stdout).toBe('1 task released\n');
    const added = await rig.run(['submit', '--after', 'first', '--name', 'more', '--', '/bin/sh', '-c', LEDGER]);
    expect(added).toMatchObject({ status: 0, stdout: 'test-1/more\n' });
    expect((await rig.run(['cancel', 'test-1/second'])).stdout).toBe('1 task cancelled\n');
    go();
    expect((await batch.outcome).status).toBe(1);
    expect(rig.ledger()).toEqual(['first 1', 'more 1', 'third 1']);
  });

  it('ends a running task that is cancelled, and its ranks', async () => {
    const file = rig.file(batchOf(waitingJob('first')));
    await using batch = started('batch', file);
    await until('the task runs', () => rig.ledger().length === 1);
    await rig.run(['cancel', 'test-1']);
    const { status, stdout } = await batch.outcome;
    expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringMatching(/^first +cancelled/mu) });
  });

  it('runs tasks again that failed, when the user asks for it', async () => {
    const file = rig.file(
      batchOf(`  - { name: a, command: '${LEDGER}; test -e ${rig.directory}/go' }`, quickJob('b', ', after: a')),
    );
    expect((await rig.run(['batch', file])).status).toBe(1);
    go();
    expect((await rig.run(['rerun', 'test-1'])).stdout).toBe('2 tasks queued again\n');
    expect((await rig.run(['batch', '--resume', 'test-1'])).status).toBe(0);
    expect(rig.ledger()).toEqual(['a 1', 'a 2', 'b 1']);
  });
});

describe('a task', () => {
  it('that waits for the start of another runs beside it', async () => {
    const file = rig.file(
      batchOf(waitingJob('a'), `  - { name: b, command: '${LEDGER}; touch ${rig.directory}/go', after: { a: start } }`),
    );
    expect((await rig.run(['batch', file])).status).toBe(0);
    expect(rig.ledger()).toEqual(['a 1', 'b 1']);
  });

  it('whose condition can never come true any more is skipped when it is added or queued again', async () => {
    const file = rig.file(batchOf(`  - { name: a, command: exit 4 }`, quickJob('b', ', after: a'), waitingJob('c')));
    await using batch = started('batch', file);
    await batch.line('stderr', /b is skipped: a did not succeed/u);
    await rig.run(['submit', '--name', 'late', '--after', 'a', 'true']);
    await batch.line('stderr', /late is skipped: a did not succeed/u);
    await rig.run(['rerun', 'test-1/b']);
    expect((await rig.run(['jobs', 'test-1/b'])).stdout).toMatch(/^b +skipped +a did not succeed$/mu);
    go();
    expect((await batch.outcome).stdout).toContain('4 tasks: 1 succeeded, 1 failed, 2 skipped');
  });
});

describe('a scheduler', () => {
  it('that is killed leaves its tasks running, and the next one goes on with them', async () => {
    const file = rig.file(batchOf(waitingJob('a'), quickJob('b', ', after: a')));
    await using batch = started('batch', file);
    await until('the task runs', () => rig.ledger().length === 1);
    batch.process.kill('SIGKILL');
    await batch.outcome;
    expect((await rig.run(['jobs', 'test-1'])).stdout).toMatch(/interrupted: 2 tasks: 1 queued, 1 running/u);
    await using next = started('batch', '--resume', 'test-1');
    await next.line('stderr', /a runs still/u);
    go();
    expect((await next.outcome).status).toBe(0);
    expect(rig.ledger()).toEqual(['a 1', 'b 1']);
  });

  it('that is interrupted once starts nothing more, and twice ends what runs', async () => {
    const file = rig.file(batchOf(waitingJob('a'), quickJob('b', ', after: { a: any }')));
    await using batch = started('batch', file);
    await until('the task runs', () => rig.ledger().length === 1);
    batch.process.kill('SIGINT');
    await batch.line('stderr', /no more tasks start; \^C again ends those that run/u);
    batch.process.kill('SIGINT');
    const { status, stdout } = await batch.outcome;
    expect({ status, stdout }).toEqual({ status: 130, stdout: expect.stringMatching(/^a +cancelled/mu) });
    expect(rig.ledger()).toEqual(['a 1']);
  });

  it('that is interrupted a third time leaves what runs to the next one', async () => {
    const file = rig.file(
      batchOf(
        `  - { name: a, command: 'trap "" TERM; ${LEDGER}; until test -e ${rig.directory}/go; do sleep 0.05; done', options: ["--grace", "60"] }`,
      ),
    );
    await using batch = started('batch', file);
    await until('the task runs', () => rig.ledger().length === 1);
    for (const said of [/no more tasks start/u, /all tasks end/u]) {
      batch.process.kill('SIGINT');
      await batch.line('stderr', said);
    }
    batch.process.kill('SIGINT');
    expect(await batch.outcome).toMatchObject({
      status: 130,
      stderr: expect.stringContaining('ncclrun batch --resume test-1 goes on with it'),
    });
    go();
    const { stdout } = await rig.run(['batch', '--resume', 'test-1']);
    expect(stdout).toMatch(/1 (succeeded|cancelled)/u);
    expect(rig.ledger()).toEqual(['a 1']);
  });

  it('counts a task whose launcher is killed as interrupted, and runs it again', async () => {
    const file = rig.file(batchOf(waitingJob('a', ', retry: { max_interruptions: 1, delay: 1s }')));
    await using batch = started('batch', file);
    await until('the task runs', () => rig.ledger().length === 1);
    const decision = join(rig.directory, 'ncclrun/batch/test-1/attempts/0.1/decision');
    const { launcher } = JSON.parse(readFileSync(decision, 'utf8'));
    process.kill(launcher.pid, 'SIGKILL');
    await batch.line('stderr', /attempt 1 failed: its launcher was lost/u);
    go();
    expect((await batch.outcome).status).toBe(0);
    expect(rig.ledger()).toEqual(['a 1', 'a 2']);
  }, 60_000);

  it('has its batch for itself', async () => {
    const file = rig.file(batchOf(waitingJob('a')));
    await using batch = started('batch', file, '--id', 'mine');
    await until('the task runs', () => rig.ledger().length === 1);
    const other = await rig.run(['batch', '--resume', 'mine']);
    expect(other).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('the scheduler of batch mine runs already'),
    });
    const again = await rig.run(['batch', file, '--id', 'mine']);
    expect(again).toMatchObject({ status: 2, stderr: expect.stringContaining('there is a batch mine already') });
    go();
    expect((await batch.outcome).status).toBe(0);
  });
});

/** Field 6 of /proc/PID/stat. */
const sessionOf = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
};

const decided = (attempt: string): { pid: number } =>
  JSON.parse(readFileSync(join(rig.directory, 'ncclrun/batch/test-1/attempts', attempt, 'decision'), 'utf8')).launcher;
const pidsOf = (tasks: number): Set<number> =>
  new Set(Array.from({ length: tasks }, (_, task) => decided(`${task}.1`).pid));

describe('a launcher', () => {
  it('runs one task after the other, each with its own output, directory and status', async () => {
    mkdirSync(join(rig.directory, 'other'));
    const file = rig.file(
      batchOf(
        `  - { name: a, command: 'pwd; echo of $NCCLRUN_TASK >&2' }`,
        `  - { name: b, command: 'pwd; exit 7', working_dir: ${rig.directory}/other, output: "${rig.directory}/b.out", after: { a: any } }`,
        `  - { name: c, command: 'pwd', after: { b: any } }`,
      ),
    );
    expect((await rig.run(['batch', file])).status).toBe(1);
    expect(pidsOf(3).size).toBe(1);
    const printed = (name: string) => readFileSync(join(rig.directory, name), 'utf8');
    expect(printed('a.0.1.out').trim().split('\n').toSorted()).toEqual([rig.directory, 'of a'].toSorted());
    expect(printed('b.out')).toMatch(new RegExp(`^${rig.directory}/other\n[^]*exited with status 7`, 'u'));
    expect(printed('c.0.1.out')).toBe(`${rig.directory}\n`);
    expect(alive(decided('0.1').pid)).toBe(false);
  });

  it('has a session of its own, and runs no two tasks at once', async () => {
    const file = rig.file(batchOf(waitingJob('a'), waitingJob('b')));
    await using batch = started('batch', file);
    await until('both run', () => rig.ledger().length === 2);
    const pids = [...pidsOf(2)];
    expect(pids).toHaveLength(2);
    for (const pid of pids) expect(sessionOf(pid)).toBe(pid);
    go();
    await batch.outcome;
  });

  it('that waits for a task leaves signals alone that were meant for the one before', async () => {
    const file = rig.file(batchOf(quickJob('a'), quickJob('b', ', hold: true'), waitingJob('c')));
    await using batch = started('batch', file);
    await batch.line('stderr', /a succeeded/u);
    for (const signal of ['SIGTERM', 'SIGUSR1', 'SIGINT'] as const) process.kill(decided('0.1').pid, signal);
    await rig.run(['release', 'test-1/b']);
    await batch.line('stderr', /b succeeded/u);
    expect(decided('1.1').pid).toBe(decided('0.1').pid);
    go();
    expect((await batch.outcome).status).toBe(0);
  });

  it('that is killed while it waits for a task is replaced', async () => {
    const file = rig.file(batchOf(quickJob('a'), quickJob('b', ', hold: true'), waitingJob('c')));
    await using batch = started('batch', file);
    await batch.line('stderr', /a succeeded/u);
    const { pid } = decided('0.1');
    process.kill(pid, 'SIGKILL');
    await until('it is gone', () => !alive(pid));
    await rig.run(['release', 'test-1/b']);
    await batch.line('stderr', /b succeeded/u);
    go();
    expect((await batch.outcome).status).toBe(0);
    expect(rig.ledger()).toEqual(['a 1', 'b 1', 'c 1']);
  });

  it('exits when its scheduler is killed, at once or once its task has ended', async () => {
    const file = rig.file(batchOf(quickJob('a'), waitingJob('b')));
    await using batch = started('batch', file);
    await batch.line('stderr', /a succeeded/u);
    await until('the other one runs', () => rig.ledger().length === 2);
    batch.process.kill('SIGKILL');
    await until('the one that waits is gone', () => !alive(decided('0.1').pid));
    expect(alive(decided('1.1').pid)).toBe(true);
    go();
    await until('the other one is gone', () => !alive(decided('1.1').pid));
    await batch.outcome;
    expect((await rig.run(['batch', '--resume', 'test-1'])).stdout).toContain('2 tasks: 2 succeeded');
    expect(rig.ledger()).toEqual(['a 1', 'b 1']);
  });

  it('whose output is no file exits after its task', async () => {
    const file = rig.file(
      batchOf(
        `  - { name: a, command: 'true', output: /dev/null }`,
        `  - { name: b, command: 'true', output: /dev/null, after: a }`,
      ),
    );
    expect((await rig.run(['batch', file])).status).toBe(0);
    expect(pidsOf(2).size).toBe(2);
  });
});

describe('mistakes', () => {
  it.each([
    [['batch'], /no batch file/u],
    [['batch', '/nonexistent.yaml'], /cannot be read \(ENOENT\)/u],
    [['batch', '--resume', 'tset-1'], /there is no batch "tset-1"/u],
    [['jobs', 'other'], /there is no batch "other"/u],
    [['cancel'], /cancel needs one batch/u],
    [['submit', '--', 'true'], /no batch of yours runs/u],
    [['submit', '--to', 'other', 'true'], /there is no batch "other"/u],
    [['submit'], /no program to run/u],
  ] as const)('the mistake in %j is answered with what to write, and with status 2', async (words, said) => {
    const { status, stderr } = await rig.run(words);
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(said) });
    expect(stderr).toMatch(/^ {2}next: /mu);
  });

  it('a mistake in a file is shown where it stands, and nothing is kept', async () => {
    const file = rig.file(batchOf('  - { name: a, comand: "true" }'));
    const { status, stderr } = await rig.run(['batch', file]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/batch\.yaml:5:\d+/u);
    expect(stderr).toContain('command');
    expect(existsSync(join(rig.directory, 'ncclrun/batch/test-1'))).toBe(false);
  });

  it('a job that does not fit the hosts is refused before it waits for ever', async () => {
    const { status, stderr } = await rig.run(['batch', rig.file(batchOf(quickJob('wide', ', ntasks: 9')))]);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringContaining('the job wide can never run on these hosts: '),
    });
    expect(existsSync(join(rig.directory, 'ncclrun/batch/test-1'))).toBe(false);
  });

  it('a mistake in the name of a task is answered with which there are', async () => {
    await rig.run(['batch', rig.file(batchOf(quickJob('train', ', array: 0-3')))]);
    expect((await rig.run(['cancel', 'test-1/trian'])).stderr).toContain('did you mean train?');
    expect((await rig.run(['cancel', 'test-1/train[9]'])).stderr).toContain('train has tasks up to train[3]');
  });
});
