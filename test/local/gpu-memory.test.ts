/** GPUs' free memory, before ranks start and before they start again: the GPUs are made up, NVML is a stand-in, processes are real. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import type { Command } from '../rig/command.ts';
import { compileLibrary } from '../rig/compile.ts';
import { FakeMachine, machineUnavailable } from '../rig/machine.ts';

describeIf(machineUnavailable(), 'GPU memory', () => {
  let directory: string;
  let machine: FakeMachine;
  let environment: Record<string, string>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ncclrun-memory-'));
    machine = await FakeMachine.make([[0], [1]], [0, 1]);
    environment = {
      NCCLRUN_LIBNVIDIA_ML: await compileLibrary(directory, 'stand-in-nvml'),
      NCCLRUN_STAND_IN_MEMORY: join(directory, 'memory'),
    };
  });
  afterAll(async () => {
    await machine[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  /** MiB of GPU 1 that are free, and who has the rest. GPU 0 has 20 GiB. */
  const free = (mebibytes: number, holder = ''): Promise<void> =>
    writeFile(join(directory, 'memory'), `20480 143360\n${mebibytes} 143360 ${holder}\n`);

  it('the launcher reports GPUs whose memory other processes hold', async () => {
    await free(143_000, `${process.pid} 360`);
    await using command = machine.start(['-n', '1', 'cat'], { environment, stdin: 'pipe' });
    expect(await command.line('stderr', /GPU/u)).toBe(
      'ncclrun: GPUs lack free memory: localhost: 20 of 140 GiB on GPU 0 (held by no process that the driver names)',
    );
    command.process.stdin?.end();
    expect(await command.outcome).toMatchObject({ status: 0 });
  });

  it('the launcher ignores the memory of a GPU that no rank uses', async () => {
    await free(500, `${process.pid} 142000`);
    await using command = machine.start(['-n', '1', 'cat'], { environment, stdin: 'pipe' });
    expect(await command.line('stderr', /GPU/u)).toMatch(/20 of 140 GiB on GPU 0 /u);
    command.process.stdin?.end();
    await command.outcome;
  });

  /** A job whose rank 1 has failed once, and has left GPU 1's memory taken. */
  const restarting = async (): Promise<Command> => {
    await free(143_000);
    const flag = join(directory, 'flag');
    await rm(flag, { force: true });
    const first = `until [ -e ${flag} ]; do sleep 0.01; done; [ $RANK = 1 ] && exit 3; exec sleep 1000`;
    const script = `[ $TORCHELASTIC_RESTART_COUNT = 1 ] || { ${first}; }; echo again`;
    const command = machine.start(['-n', '2', '--max-restarts', '1', 'sh', '-c', script], { environment });
    await command.line('stderr', /lack free memory/u); // of GPU 0: so it was measured
    await free(20_480, `${process.pid} 122880`);
    await writeFile(flag, '');
    return command;
  };
  const waits =
    /^ncclrun: localhost: the ranks wait for memory: GPU 1 has 20 of 140 GiB free \(held by pid (\d+) \S.*\)$/u;

  describe('the memory of ended ranks', () => {
    it('a restart waits until the memory of ended ranks is free', async () => {
      await using command = await restarting();
      const [, pid] = waits.exec(await command.line('stderr', /wait for memory/u)) ?? [];
      expect(pid).toBe(String(process.pid));
      await free(143_000);
      const { status, stdout } = await command.outcome;
      expect({ status, ranks: stdout.match(/again/gu)?.length }).toEqual({ status: 0, ranks: 2 });
    });

    it('SIGINT ends the wait for memory', async () => {
      await using command = await restarting();
      await command.line('stderr', waits);
      command.signal('SIGINT');
      expect(await command.outcome).toMatchObject({ status: 130, stdout: '' });
    });
  });
});
