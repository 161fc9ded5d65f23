/** Errors that GPUs report to their driver, in the kernel's log: GPUs and errors are made up, the log is the machine's own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { compileLibrary } from '../rig/compile.ts';
import { kernelLogUnavailable } from '../rig/kernel-log.ts';
import { FakeMachine, machineUnavailable } from '../rig/machine.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

/** Rank 1 writes that, and fails. */
const job = (...lines: readonly string[]) => {
  const write = lines.map((line) => `echo "${line}" >/dev/kmsg`).join('; ');
  return ['-n', '2', 'sh', '-c', `if [ $RANK = 1 ]; then ${write}; exit 3; fi; sleep 1000`];
};

describeIf(machineUnavailable() ?? kernelLogUnavailable(), 'a GPU error in the kernel log', () => {
  it("the launcher reports the Xid at once and in the verdict of the GPU's rank", async () => {
    await using machine = await FakeMachine.make([[0], [1]], [0, 1]);
    const line = "NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    const { status, stdout, stderr } = await machine.run(['--json', ...job(line)]);
    expect(status).toBe(3);
    const gpu = { gpu: 1, address: '0000:2b:00.0', ranks: [1] };
    expect(parseResult(stdout).failures).toMatchObject([
      {
        type: 'rank-exit',
        rank: 1,
        gpu: { index: 1, address: '0000:2b:00.0' },
        xids: [{ host: 'localhost', code: 79, ...gpu, pid: null, message: 'GPU has fallen off the bus' }],
      },
    ]);
    expect(stderr).toContain('localhost: GPU 1 (0000:2b:00.0, rank 1) reported Xid 79: GPU has fallen off the bus\n');
    expect(stderr).toMatch(
      /rank 1 on localhost \(pid \d+, GPU 1 at 0000:2b:00\.0\) exited with status 3\n {4}GPU 1 \(0000:2b:00\.0\) reported Xid 79: GPU has fallen off the bus/,
    );
    expect(stderr).toContain('next: Xid 79 of GPU 1 on localhost: take that host out of use');
  });

  it('an Xid belongs to the rank whose process it names', async () => {
    await using machine = await FakeMachine.make([[0], [1]], [0, 1]);
    const { stdout } = await machine.run([
      '--json',
      ...job('NVRM: Xid (PCI:0000:1b:00): 31, pid=$$, name=sh, MMU Fault'),
    ]);
    expect(parseResult(stdout).failures).toMatchObject([{ rank: 1, xids: [{ code: 31, gpu: 0, ranks: [1] }] }]);
  });

  it('an Xid of a GPU that no rank uses is ignored', async () => {
    await using machine = await FakeMachine.make([[0], [1]], [0, 1, 1]);
    const { stdout, stderr } = await machine.run([
      '--json',
      ...job('NVRM: Xid (PCI:0000:3b:00): 79, lost', 'NVRM: Xid (PCI:0000:2b:00): 13, ours'),
    ]);
    expect(parseResult(stdout).failures).toMatchObject([{ rank: 1, xids: [{ code: 13 }] }]);
    expect(stderr).not.toContain('Xid 79');
  });
});

describeIf(machineUnavailable(), 'a GPU error without access to the kernel log', () => {
  it('NVML reports the Xid', async () => {
    await using machine = await FakeMachine.make([[0], [1]], [0, 1]);
    await using steering = await Steering.open();
    const directory = await mkdtemp(join(tmpdir(), 'ncclrun-xids-'));
    const environment = {
      NCCLRUN_LIBNVIDIA_ML: await compileLibrary(directory, 'stand-in-nvml'),
      NCCLRUN_STAND_IN_XIDS: join(directory, 'xids'),
    };
    const argv = ['--json', '-n', '2', ...steering.options, steering.program];
    await using command = machine.start(argv, { environment }, false);
    const [, second] = await steering.ranks(2);
    await writeFile(environment.NCCLRUN_STAND_IN_XIDS, '1 79\n');
    const told = 'GPU 1 (0000:2b:00.0, rank 1) reported Xid 79: the GPU has fallen off the bus';
    expect(await command.line('stderr', /Xid/u)).toBe(`ncclrun: localhost: ${told}`);
    await second?.exit(3);
    const { stdout } = await command.outcome;
    expect(parseResult(stdout).failures).toMatchObject([{ rank: 1, xids: [{ code: 79, gpu: 1, pid: null }] }]);
    await rm(directory, { recursive: true });
  });
});
