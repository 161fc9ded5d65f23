/** Several jobs that want the same GPU: the GPUs are made up, jobs and locks are real. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BatchRig } from '../rig/batch.ts';
import { describeIf } from '../rig/capability.ts';
import type { Command } from '../rig/command.ts';
import { FakeMachine, machineUnavailable } from '../rig/machine.ts';
import { parseResult } from '../rig/result.ts';

describeIf(machineUnavailable(), 'a GPU that another job holds', () => {
  let machine: FakeMachine;
  let directory: string;
  beforeEach(async () => {
    machine = await FakeMachine.make([[0], [1]], [0, 1]);
    directory = await mkdtemp(join(tmpdir(), 'ncclrun-locks-'));
  });
  afterEach(async () => {
    await machine[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  /** A job on GPU 0, until its stdin ends. */
  const holder = async (): Promise<Command> => {
    const command = machine.start(['-n', '1', 'sh', '-c', 'echo runs; exec cat'], { stdin: 'pipe' });
    await command.line('stdout', /runs/u);
    return command;
  };
  const who = `held by job [0-9a-f]{12} of ${userInfo().username} \\(pid \\d+\\)`;

  it('is shared by a job that does not say otherwise, which reports it', async () => {
    await using first = await holder();
    const { status, stderr } = await machine.run(['-n', '2', 'true']);
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(
        new RegExp(`^ncclrun: localhost: GPU 0 is ${who}, and this job uses it, too \\(--busy-gpus\\)\n$`, 'u'),
      ),
    });
    expect((await machine.run(['-n', '2', '--busy-gpus', 'ignore', 'true'])).stderr).toBe('');
    first.process.stdin?.end();
    await first.outcome;
  });

  it('keeps a job from starting that does not share, until the first one ends, whatever ends that', async () => {
    await using first = await holder();
    const words = ['--busy-gpus', 'refuse', '-n', '2', 'true'];
    const { status, stdout, stderr } = await machine.run(['--json', ...words]);
    expect(status).toBe(125);
    expect(parseResult(stdout)).toMatchObject({
      reason: 'gpus-busy',
      failures: [{ type: 'gpus-busy', host: 'localhost', gpus: [{ index: 0, slot: 0 }] }],
    });
    expect(stderr).toMatch(new RegExp(`^ncclrun: localhost: GPU 0 is ${who}\n`, 'u'));
    expect(stderr).toContain('leave the GPUs out (--exclude localhost:0), or share them (--busy-gpus ignore)');
    first.process.kill('SIGKILL');
    await first.outcome;
    expect(await machine.run(words)).toMatchObject({ status: 0, stderr: '' });
  });

  it('is no reason against a job on the host device, on other GPUs, or within the job', async () => {
    await using first = await holder();
    const refuse = ['--busy-gpus', 'refuse'];
    expect((await machine.run([...refuse, '-n', '2', '-x', 'NCCLRUN_DEVICE=host', 'true'])).status).toBe(0);
    expect((await machine.run([...refuse, '-H', 'localhost:2', '--exclude', 'localhost:0', 'true'])).status).toBe(0);
    first.process.stdin?.end();
    await first.outcome;
    const inner = ['-n', '1', 'bin/ncclrun', ...refuse, '-n', '1', 'true'];
    expect(await machine.run([...refuse, ...inner])).toMatchObject({ status: 0, stderr: '' });
  });

  it('makes a task of a batch run on another one, and wait where there is none', async () => {
    await using rig = await BatchRig.open();
    await using first = await holder();
    const out = join(directory, 'gpus');
    const file = join(directory, 'batch.yaml');
    const command = `echo $CUDA_VISIBLE_DEVICES >> ${out}`;
    await writeFile(file, `version: 1\nname: gpus\njobs:\n  - { name: a, command: '${command}', working_dir: / }\n`);
    const environment = { XDG_STATE_HOME: rig.directory };
    const { status, stderr } = await machine.run(['batch', file, '-H', 'localhost:2'], { environment });
    expect(status).toBe(0);
    expect(await readFile(out, 'utf8')).toBe('1\n');
    expect(stderr).toMatch(
      new RegExp(`a: attempt 1 did not start: localhost: GPU 0 is ${who}; again as soon as there is room`, 'u'),
    );

    await using batch = machine.start(['batch', file, '-H', 'localhost:1'], { environment });
    await batch.line('stderr', /a: attempt 1 did not start/u);
    const { stdout } = await machine.run(['jobs', 'gpus-2'], { environment });
    expect(stdout).toMatch(
      /^a +queued +1 .*: GPU 0 is held by job .*; wants 1 slot; 0 of 1 slots are free; can start at /mu,
    );
    first.process.stdin?.end();
    await first.outcome;
  });
});
