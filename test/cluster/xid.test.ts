/** Errors of GPUs on several hosts. All of them have one kernel's log here, so each must know its own GPUs. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { kernelLogUnavailable, writeKernelLog } from '../rig/kernel-log.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

describeIf(clusterUnavailable() ?? kernelLogUnavailable(), 'an error of a GPU of another host', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    const make = 'mount -t tmpfs tmpfs /proc/driver && mkdir -p /proc/driver/nvidia/gpus/$0';
    await cluster.host('h1').exec('sh', '-c', make, '0000:c1:00.0');
    await cluster.host('h2').exec('sh', '-c', make, '0000:c2:00.0');
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('the verdict of a rank that fails after the error lists the Xid', async () => {
    await using steering = await Steering.open();
    const argv = ['--json', '-H', 'h1:1,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const [first] = await steering.ranks(2);
    writeKernelLog('NVRM: Xid (PCI:0000:c2:00): 79, pid=1, name=x, GPU has fallen off the bus.');
    const reported = 'h2: GPU 0 (0000:c2:00.0, rank 1) reported Xid 79: GPU has fallen off the bus (pid 1)';
    expect(await command.line('stderr', /Xid/u)).toBe(`ncclrun: ${reported}`);
    await first?.exit(3);
    const { stdout, stderr } = await command.outcome;
    expect(parseResult(stdout).failures).toMatchObject([
      {
        host: 'h1',
        rank: 0,
        gpu: { index: 0, address: '0000:c1:00.0' },
        xids: [{ host: 'h2', code: 79, gpu: 0, address: '0000:c2:00.0', ranks: [1] }],
      },
    ]);
    const [, verdict] = stderr.split('exited with status 3\n');
    expect(verdict).toMatch(/^ {4}h2: GPU 0 .* reported Xid 79: .*\n/u);
    expect(verdict).toContain('next: Xid 79 of GPU 0 on h2: take that host out of use');
  });
});
