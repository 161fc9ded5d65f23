/** Hosts whose GPUs have not the same memory to give; and ranks that start again there. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileLibrary } from '../rig/compile.ts';

describeIf(clusterUnavailable(), 'GPU memory of several hosts', () => {
  let cluster: Cluster;
  let directory: string;
  /** Every host has a GPU, and a /tmp of its own that says what NVML tells there. */
  const free = (host: string, line: string): Promise<string> =>
    cluster.host(host).exec('sh', '-c', 'echo "$0" >/tmp/memory', line);
  beforeAll(async () => {
    directory = await mkdtemp('/var/tmp/ncclrun-memory-'); // /tmp is every host's own
    const library = await compileLibrary(directory, 'stand-in-nvml');
    const sshd = `SetEnv NCCLRUN_LIBNVIDIA_ML=${library} NCCLRUN_STAND_IN_MEMORY=/tmp/memory`;
    cluster = await Cluster.start(3, { sshd });
    const gpus = 'mount -t tmpfs tmpfs /proc/driver && mkdir -p /proc/driver/nvidia/gpus/0000:1b:00.0';
    for (const host of ['h1', 'h2', 'h3']) {
      await cluster.host(host).exec('sh', '-c', gpus);
      await free(host, '143000 143360');
    }
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('the launcher reports hosts that differ in free GPU memory, and a restart waits until memory is free', async () => {
    await free('h3', '20480 143360 1 122880');
    const flag = join(directory, 'flag');
    const first = `until [ -e ${flag} ]; do sleep 0.01; done; [ $RANK = 1 ] && exit 3; exec sleep 1000`;
    const script = `[ $TORCHELASTIC_RESTART_COUNT = 1 ] || { ${first}; }; echo again`;
    const argv = ['-H', 'h1:1,h2:1,h3:1', '--max-restarts', '1', 'sh', '-c', script];
    await using command = Command.start(argv, { cluster });
    expect(await command.line('stderr', /GPU/u)).toBe(
      'ncclrun: hosts differ in free GPU memory: h[1-2]: 140 of 140 GiB; h3: 20 of 140 GiB on GPU 0 (held by pid 1 host.sh, user root)',
    );
    await free('h2', '1024 143360 1 122880');
    await cluster.host('h1').exec('touch', flag);
    expect(await command.line('stderr', /wait for memory/u)).toBe(
      'ncclrun: h2: the ranks wait for memory: GPU 0 has 1 of 140 GiB free (held by pid 1 host.sh, user root)',
    );
    await free('h2', '143000 143360');
    const { status, stdout } = await command.outcome;
    expect({ status, ranks: stdout.match(/again/gu)?.length }).toEqual({ status: 0, ranks: 3 });
  });
});
