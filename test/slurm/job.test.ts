/** Jobs inside a Slurm allocation, with a real slurmctld and a slurmd on each of several hosts. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeIf, findProgram } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { partsOn } from '../rig/faults.ts';
import { signalFound, withEnvironment } from '../rig/processes.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';
import { until } from '../rig/until.ts';

const ncclrun = join(repository, 'bin/ncclrun');

describeIf(slurmUnavailable(), 'a job in a Slurm allocation', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  let directory: string;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    slurm = await Slurm.start(cluster, { gpus: 2 });
    directory = await mkdtemp('/var/tmp/ncclrun-slurm-');
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  const salloc = (options: readonly string[], ...words: readonly string[]) =>
    slurm.run(['salloc', '--quiet', ...options, ncclrun, ...words]);

  it.each([
    ['tasks', ['--nodes=2', '--ntasks-per-node=2'], ['h1', 'h1', 'h2', 'h2']],
    ['GPUs', ['--nodes=3', '--gpus-per-node=2'], ['h1', 'h1', 'h2', 'h2', 'h3', 'h3']],
    ['hosts', ['--nodes=2'], ['h1', 'h2']],
  ])('the job has as many slots as the allocation has %s', async (_, options, hosts) => {
    const { status, stdout, stderr } = await salloc(options, '--tag-output=none', 'hostname');
    expect({ status, stderr, hosts: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, stderr: '', hosts });
  });

  it.each([
    ['its own GPU', [], ['h1 0', 'h1 1', 'h2 0', 'h2 1']],
    ['all GPUs of its host with --gpu-bind=none', ['--gpu-bind=none'], ['h1 0,1', 'h1 0,1', 'h2 0,1', 'h2 0,1']],
  ])('a rank of a job with --gpus-per-task sees %s', async (_, bind, lines) => {
    const options = ['--nodes=2', '--ntasks-per-node=2', '--cpus-per-task=3', '--gpus-per-task=1', ...bind];
    const script = 'echo $(hostname) $CUDA_VISIBLE_DEVICES';
    const { status, stdout } = await salloc(options, '--tag-output=none', 'sh', '-c', script);
    expect({ status, lines: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, lines });
  });

  it('the ranks join one communicator', async () => {
    const { status, stdout } = await salloc(['--nodes=3'], '-N', '1', join(repository, 'examples/all-reduce.ts'));
    expect({ status, right: stdout.includes('every element is 6') }).toEqual({ status: 0, right: true });
  });

  it('an aggregator runs on the host of the allocation that has no ranks', async () => {
    const words = ['-n', '2', '-N', '1', '-v', '--collnet', join(repository, 'examples/all-reduce.ts')];
    const { status, stdout, stderr } = await salloc(['--nodes=3'], ...words);
    expect({ status, right: stdout.includes('every element is 3') }, stderr).toEqual({ status: 0, right: true });
    expect(stderr).toMatch(/: 1 aggregator: 10\.77\.0\.13 port [0-9]+\n/u);
    for (const name of ['h1', 'h2', 'h3']) await onlySlurm(name);
    const other = await salloc(['--nodelist=h1,h2'], '--collnet-hosts', 'h3', 'true');
    expect(other).toMatchObject({ status: 2, stderr: expect.stringContaining('h3 is not in the Slurm allocation') });
  });

  it('-H selects hosts of the allocation and rejects others', async () => {
    const picked = await salloc(['--nodes=2', '--ntasks=4'], '-H', 'h2', '--tag-output=none', 'hostname');
    expect(picked).toMatchObject({ status: 0, stdout: 'h2\n' });
    const other = await salloc(['--nodelist=h1,h2', '--ntasks=4'], '-H', 'h3', 'hostname');
    expect(other).toMatchObject({ status: 2, stderr: expect.stringContaining('h3 is not in the Slurm allocation') });
  });

  it("the batch job exits with the job's exit status", async () => {
    const output = join(directory, 'status');
    const script = 'exit $((RANK == 2 ? 5 : 0))';
    const words = ['--nodes=2', '--ntasks-per-node=2', `--output=${output}`, '--', 'sh', '-c', script] as const;
    const { status, stdout } = await slurm.run([ncclrun, 'sbatch', '--wait', ...words]);
    expect(status).toBe(5);
    const job = /Submitted batch job ([0-9]+)/.exec(stdout)?.[1] ?? '';
    expect(await slurm.jobField(job, 'ExitCode')).toBe('5:0');
    expect(await readFile(output, 'utf8')).toContain('rank 2 on h2');
  });

  it('scancel ends the ranks in order and leaves nothing behind', async () => {
    const output = join(directory, 'cancel');
    const script = 'trap "echo rank $RANK ends; exit 0" TERM; echo here-$RANK; while :; do sleep 0.05; done';
    const job = await submitted(['--nodes=2', '--ntasks-per-node=1', `--output=${output}`], script);
    await reported(output, /here-\d/g, 2);
    await slurm.run(['scancel', job]);
    await slurm.jobReaches(job, 'JobState', 'CANCELLED');
    await reported(output, /rank [01] ends/g, 2);
    expect(await slurm.jobField(job, 'ExitCode')).toBe('143:0');
    for (const name of ['h1', 'h2']) await onlySlurm(name);
  });

  it.each([
    ['the step', []],
    ['the batch script', ['--batch']],
  ])('SIGUSR1 to %s reaches the ranks', async (_, whom) => {
    const output = join(directory, `usr1-${whom.length}`);
    const script = 'trap "echo rank $RANK got it" USR1; echo here-$RANK; while :; do sleep 0.05; done';
    const job = await submitted(['--nodes=2', '--ntasks-per-node=1', `--output=${output}`], script);
    await reported(output, /here-\d/g, 2);
    await slurm.run(['scancel', '--signal=USR1', ...whom, job]);
    await reported(output, /rank [01] got it/g, 2);
    expect(await slurm.jobField(job, 'JobState')).toBe('RUNNING');
    await slurm.run(['scancel', job]);
    await slurm.jobReaches(job, 'JobState', 'CANCELLED');
  });

  it('the launcher names a host whose agent does not start', async () => {
    const bundle = join(repository, 'dist/bundle/agent.cjs');
    const program = join(directory, 'stopped.cjs');
    await writeFile(program, 'process.kill(process.pid, "SIGSTOP")');
    await cluster.host('h3').exec('mount', '--bind', program, bundle);
    try {
      const { status, stderr } = await salloc(['--nodelist=h1,h3'], 'hostname');
      expect(status).toBe(125);
      expect(stderr).toMatch(/^ncclrun: h3: the agent on h3 did not come up: process \d+ was stopped for 5 s/m);
      await until('no agent on h3', () => partsOn(cluster.host('h3'), 'agent').length === 0);
    } finally {
      await cluster.host('h3').exec('umount', bundle);
    }
  });

  describe('a host without ncclrun', () => {
    // A step of Slurm has the HOME of whoever started it.
    const caches = join(homedir(), '.cache');
    let cache: string;
    beforeAll(async () => {
      cache = join(directory, 'cache');
      await mkdir(cache);
      await cluster.host('h3').hideInstallation();
      await cluster.host('h3').useCache(cache, homedir());
    });
    afterAll(async () => {
      await cluster.host('h3').exec('umount', repository);
      await cluster.host('h3').exec('umount', caches);
    });

    it('the launcher reports the missing installation with --stage never', async () => {
      const { status, stderr } = await salloc(['--nodelist=h1,h3'], '--stage', 'never', 'hostname');
      expect(status).toBe(125);
      expect(stderr).toMatch(/^ncclrun: h3: ncclrun was not found on h3: looked for .*ncclrun-agent/m);
      expect(stderr).not.toContain('h1:');
    });

    it('the launcher names only that host even if srun ends late', async () => {
      const slow = join(directory, 'slow');
      await mkdir(slow);
      await writeFile(
        join(slow, 'srun'),
        `#!/bin/sh\n${findProgram('srun') ?? ''} "$@"; status=$?; sleep 4; exit $status\n`,
      );
      await chmod(join(slow, 'srun'), 0o755);
      const path = `PATH=${slow}:${process.env['PATH'] ?? ''}`;
      const words = ['--quiet', '--nodelist=h1,h3', 'env', path, ncclrun, '--stage', 'never', 'hostname'] as const;
      await cluster.host('h3').delay(100, 0); // the agent of h1 has called by then
      const { status, stderr } = await slurm.run(['salloc', ...words]);
      await cluster.host('h3').undelay();
      expect(status).toBe(125);
      expect(stderr).toMatch(/^ncclrun: h3: ncclrun was not found on h3: /m);
      expect(stderr).not.toContain('h1:');
    });

    it('the launcher reports why it cannot copy ncclrun', async () => {
      await cluster.host('h3').exec('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', caches);
      const { status, stderr } = await salloc(['--nodelist=h1,h3'], 'hostname');
      await cluster.host('h3').exec('umount', caches);
      expect(status).toBe(125);
      expect(stderr).toMatch(
        /^ncclrun: h3: ncclrun could not be copied into the cache directory of h3: .*No space left/m,
      );
      expect(stderr).not.toContain('h1:');
      expect(await readdir(cache)).toEqual([]);
    });

    it.each([
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)('%s ends the job during the copy', async (signal, expected) => {
      await cluster.host('h3').rate('4mbit');
      await using command = slurm.start(['salloc', '--quiet', '--nodelist=h1,h3', ncclrun, 'hostname']);
      await command.line('stderr', /copying it/);
      process.kill(launcherPid(), signal);
      const { status, stdout } = await command.outcome;
      await cluster.host('h3').unrate();
      expect({ status, stdout }).toEqual({ status: expected, stdout: '' });
      for (const name of ['h1', 'h3']) await onlySlurm(name);
      expect((await readdir(cache, { recursive: true })).filter((name) => name !== 'ncclrun')).toEqual([]);
    });

    it('the launcher copies ncclrun once', async () => {
      const runs = [];
      for (let run = 0; run < 2; run += 1)
        runs.push(await salloc(['--nodelist=h1,h3'], '--tag-output=none', 'hostname'));
      const seen = runs.map(({ status, stdout, stderr }) => ({
        status,
        hosts: stdout.trim().split('\n').toSorted(),
        copied: /^ncclrun: h3 has no ncclrun .*: copying it/m.test(stderr),
      }));
      const right = { status: 0, hosts: ['h1', 'h3'] };
      expect(seen).toEqual([
        { ...right, copied: true },
        { ...right, copied: false },
      ]);
      expect(await readdir(join(cache, 'ncclrun'))).toHaveLength(1);
      for (const name of ['h1', 'h3']) await onlySlurm(name);
    });
  });

  it('the launcher names a host that becomes silent', async () => {
    await using command = slurm.start([
      'salloc',
      '--quiet',
      '--nodelist=h2,h3',
      ncclrun,
      'sh',
      '-c',
      'echo up; sleep 1000',
    ]);
    await command.line('stdout', /1.*up/);
    await cluster.host('h3').cut();
    const { status, stderr } = await command.outcome;
    await cluster.host('h3').uncut();
    expect({ status, named: /lost host h3|h3.*(lost|silent)/.test(stderr) }).toEqual({ status: 125, named: true });
    await onlySlurm('h2');
  });

  it('a restart reuses the running agents', async () => {
    const script =
      '[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && exit 3; echo up $TORCHELASTIC_RESTART_COUNT';
    const run = await salloc(['--nodes=2', '--ntasks-per-node=1'], '--max-restarts', '2', 'sh', '-c', script);
    expect({ status: run.status, up: run.stdout.match(/up 2/g)?.length }).toEqual({ status: 0, up: 2 });
    for (const name of ['h1', 'h2']) await onlySlurm(name);
  });

  it('a restart replaces a lost agent in a separate step', async () => {
    const script = 'echo up $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000';
    const words = ['--nodelist=h1,h2', ncclrun, '--max-restarts', '1', 'sh', '-c', script];
    await using command = slurm.start(['salloc', '--quiet', ...words]);
    for (const rank of [0, 1]) await command.line('stdout', new RegExp(`^\\[${rank}\\] up 0`));
    const agent = cluster
      .host('h2')
      .guests()
      .find(({ argv }) => argv.some((word) => word.endsWith('agent.cjs')));
    signalFound(agent, 'SIGKILL');
    const { status, stdout } = await command.outcome;
    expect({ status, again: stdout.match(/up 1/g)?.length }).toEqual({ status: 0, again: 2 });
    for (const name of ['h1', 'h2']) await onlySlurm(name);
  });

  it('^C ends the ranks in order', async () => {
    const script = 'trap "echo rank $RANK ends; exit 0" INT; echo up; while :; do sleep 0.05; done';
    await using command = slurm.start(['salloc', '--quiet', '--nodelist=h1,h2', ncclrun, 'sh', '-c', script]);
    for (const rank of [0, 1]) await command.line('stdout', new RegExp(`^\\[${rank}\\] up`));
    process.kill(launcherPid(), 'SIGINT');
    const { status, stdout, stderr } = await command.outcome;
    expect({ status, ends: stdout.match(/rank [01] ends/g)?.length }).toEqual({ status: 130, ends: 2 });
    expect(stderr).not.toContain('srun');
    for (const name of ['h1', 'h2']) await onlySlurm(name);
  });

  it('no process remains when the launcher is killed', async () => {
    await using command = slurm.start([
      'salloc',
      '--quiet',
      '--nodelist=h1,h2',
      ncclrun,
      'sh',
      '-c',
      'echo up; sleep 1000',
    ]);
    for (const rank of [0, 1]) await command.line('stdout', new RegExp(`^\\[${rank}\\] up`));
    process.kill(launcherPid(), 'SIGKILL');
    await command.outcome;
    for (const name of ['h1', 'h2']) await onlySlurm(name);
    const sruns = () => withEnvironment(`SLURM_CONF=${slurm.configuration}`).filter(({ argv }) => argv[0] === 'srun');
    await expect.poll(sruns, { timeout: 10_000 }).toEqual([]);
  });

  it('ncclrun rejects a start as one task of many, in each task', async () => {
    const { status, stdout, stderr } = await slurm.run([
      'salloc',
      '--quiet',
      '--ntasks=2',
      'srun',
      '--ntasks=2',
      ncclrun,
      'true',
    ]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('this is task 0 of 2 that srun has started');
    expect(stderr).toContain('this is task 1 of 2 that srun has started, and one ncclrun starts all ranks');
  });

  it('srun does not take over what the environment says about its streams', async () => {
    const settings = ['SLURM_STDINMODE=none', 'SLURM_LABELIO=1', 'SLURM_DISTRIBUTION=cyclic'];
    const words = ['--quiet', '--nodes=2', 'env', ...settings, ncclrun, '--tag-output=none', 'hostname'] as const;
    const { status, stdout } = await slurm.run(['salloc', ...words]);
    expect({ status, hosts: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, hosts: ['h1', 'h2'] });
  });

  it('ncclrun in a step on one host of three uses that host', async () => {
    const { status, stdout } = await slurm.run([
      'salloc',
      '-Q',
      '--nodes=3',
      'srun',
      '--nodes=1',
      '--ntasks=1',
      ncclrun,
      'hostname',
    ]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'h1\n' });
  });

  it('a heterogeneous job is refused', async () => {
    const { status, stdout, stderr } = await slurm.run(['salloc', '-Q', '-N1', ':', '-N1', ncclrun, 'hostname']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('this is a heterogeneous Slurm job of 2 components');
  });

  /** Of ncclrun, which salloc has started. */
  function launcherPid(): number {
    const found = withEnvironment(`SLURM_CONF=${slurm.configuration}`).find(({ argv }) =>
      argv.some((word) => word.endsWith('dist/bundle/main.cjs')),
    );
    if (found === undefined) throw new Error('no launcher runs');
    return found.pid;
  }

  async function submitted(options: readonly string[], script: string): Promise<string> {
    const { stdout } = await slurm.run([ncclrun, 'sbatch', '--parsable', ...options, '--', 'sh', '-c', script]);
    return stdout.trim();
  }

  /** No process on the host but Slurm's own. */
  async function onlySlurm(name: string): Promise<void> {
    const others = () =>
      cluster
        .host(name)
        .guests()
        .filter(({ argv }) => !/slurmd/.test(argv[0] ?? ''));
    await expect.poll(others, { timeout: 10_000 }).toEqual([]);
  }
});

/** Resolves when the file has that many lines of the kind. */
async function reported(path: string, pattern: RegExp, times: number): Promise<void> {
  await expect
    .poll(async () => [...(await readFile(path, 'utf8').catch(() => '')).matchAll(pattern)].length, {
      timeout: 15_000,
    })
    .toBe(times);
}
