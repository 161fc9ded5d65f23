/** GPUs of several hosts: the stand-in's, which a network connects. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { buildGpuDirect, buildStandIn, gpuDirectEnvironment, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { sampleSize } from '../rig/whole.ts';

const variables = { ...standInEnvironment, ...ownKernels };
const exportsOf = (all: Readonly<Record<string, string>>): string[] =>
  Object.entries(all).flatMap(([name, value]) => ['-x', `${name}=${value}`]);
const exported = exportsOf(variables);
const direct = exportsOf(gpuDirectEnvironment('device-memory,dma-buf'));

describeIf(clusterUnavailable(), 'GPUs of several hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    buildMatrix();
    buildStandIn();
    buildGpuDirect();
    cluster = await Cluster.start(3);
  }, 900_000);
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each(['h1:1,h2:1', 'h1:2,h2:1', 'h1:2,h2:2', 'h1:1,h2:1,h3:1'])(
    'collectives on GPUs of %s give exact results',
    (hosts) => {
      const ranks = hosts.match(/:\d/g)?.reduce((sum, slots) => sum + Number(slots.slice(1)), 0) ?? 0;
      return runMatrix(ranks, ['-H', hosts, '--tag-output=none', ...exported], {
        cluster,
        seed: ranks,
        part: sampleSize(20, 40),
      });
    },
  );

  it.each(['h1:1,h2:1', 'h1:2,h2:1,h3:1'])('collectives by GPUDirect on GPUs of %s give exact results', (hosts) => {
    const ranks = hosts.match(/:\d/g)?.reduce((sum, slots) => sum + Number(slots.slice(1)), 0) ?? 0;
    const words = ['-H', hosts, '--tag-output=none', ...exported, ...direct];
    return runMatrix(ranks, words, { cluster, seed: ranks, part: sampleSize(20, 40) });
  });

  it.each(['h1:2,h2:2', 'h1:2,h2:1,h3:1'])(
    'collectives on GPUs of %s, whose network reduces, give exact results',
    (hosts) => {
      const ranks = hosts.match(/:\d/g)?.reduce((sum, slots) => sum + Number(slots.slice(1)), 0) ?? 0;
      const words = ['-H', hosts, '--tag-output=none', ...exported, ...direct, '-x', 'NCCL_COLLNET_ENABLE=1'];
      return runMatrix(ranks, words, { cluster, seed: ranks, part: sampleSize(20, 40) });
    },
  );

  it('collectives by rails on GPUs of h1:2,h2:2 give exact results', () =>
    runMatrix(4, ['-H', 'h1:2,h2:2', '--tag-output=none', ...exported], {
      cluster,
      seed: 8,
      part: 20,
      environment: { NCCL_ALGO: 'allreduce:rail;allgather:rail;reducescatter:rail' },
    }));

  // More than one launch has messages for, and than one host has GPUs.
  it.each(['all_reduce', 'alltoall', 'gather', 'scatter'])('22 GPUs on 3 hosts: %s is exact', async (collective) => {
    const sizes = ['-b', '1K', '-e', '64K', '-f', '64', '--iters', '1', '--warmup', '1', '--check'];
    const hosts = ['-H', 'h1:8,h2:7,h3:7', '-x', 'NCCL_MAX_NCHANNELS=2', '-x', 'NCCLRUN_STAND_IN_GPUS=8'];
    const words = ['perf', collective, ...hosts, ...exported, '--device', 'cuda', ...sizes];
    const { status, stdout } = await Command.run(words, { cluster });
    expect({ status, stdout }).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Out of bounds values : 0 OK'),
    });
  });

  it('a Python program of a hostfile job sums on the GPUs of two hosts, on our library in place of its own', async () => {
    const hostfile = join(cluster.state, 'gpu-hostfile');
    await writeFile(hostfile, 'h1 slots=2\nh2 slots=2\n');
    const program = ['python3', join(repository, 'test/rig/programs/gpu-all-reduce.py')];
    const words = ['--hostfile', hostfile, '--engine', 'ncclrun', '--tag-output=none', ...exported, ...program];
    const { status, stdout, stderr } = await Command.run(words, { cluster });
    const lines = [0, 1, 2, 3].map((rank) => `rank ${rank} of 4 on h${rank < 2 ? 1 : 2}: 0 wrong`);
    expect({ status, stderr, lines: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, stderr: '', lines });
  });

  it('GPUs of different hosts that call all_reduce with unlike operators learn it, though nobody waits', async () => {
    const perf = join(repository, 'build/ncclrun-perf');
    const size =
      '--begin 1024 --end 1024 --factor 2 --iters 100 --warmup 5 --blocking 0 --check 0 --root 0 --type float';
    const script = `exec ${perf} all_reduce ${size} --device cuda --op $([ $RANK = 0 ] && echo sum || echo max)`;
    const words = ['-H', 'h1:1,h2:1', ...exported, 'sh', '-c', script];
    const { status, stderr } = await Command.run(words, { cluster });
    expect(stderr).toMatch(
      /rank [01] on host h[12] called allReduce of 256 float32 with (sum|max); rank [01] on host h[12] called allReduce of 256 float32 with (sum|max)/u,
    );
    expect(status).toBe(1);
  });

  // Rank 1 on h2 has the process id.
  it.each<[string, (pid: string) => Promise<void>, RegExp, readonly string[]]>([
    [
      'dies, with slots in GPU memory,',
      async (pid) => void (await cluster.host('h2').exec('kill', '-9', pid)),
      /\[0\] ncclrun-perf: .*rank 1 \(h2, pid \d+\) was killed by SIGKILL|rank 1 on host h2/u,
      direct,
    ],
    [
      'dies in a group that the network reduces',
      async (pid) => void (await cluster.host('h2').exec('kill', '-9', pid)),
      /\[0\] ncclrun-perf: .*(rank 1 \(h2, pid \d+\) was killed by SIGKILL|rank 1 on host h2)/u,
      [...direct, '-x', 'NCCL_COLLNET_ENABLE=1'],
    ],
    [
      'dies',
      async (pid) => void (await cluster.host('h2').exec('kill', '-9', pid)),
      /\[0\] ncclrun-perf: .*rank 1 \(h2, pid \d+\) was killed by SIGKILL|rank 1 on host h2/u,
      [],
    ],
    [
      'is stopped',
      async (pid) => void (await cluster.host('h2').exec('kill', '-STOP', pid)),
      /\[0\] ncclrun-perf: .*rank 1 on host h2.* has sent no heartbeat for 2 s .*its process is stopped/u,
      [],
    ],
    [
      'is on a host that is cut off',
      async () => {
        const { address } = cluster.host('h2');
        await cluster.host('h1').exec('iptables', '-I', 'OUTPUT', '-d', address, '-j', 'DROP');
        await cluster.host('h1').exec('iptables', '-I', 'INPUT', '-s', address, '-j', 'DROP');
      },
      // Both ranks notice it: rank 0 by itself, or by what rank 1 has reported.
      /\[0\] ncclrun-perf: .*(rank 1 on host h2: its host at 10\.77\.0\.12|rank 0 on host h1: its host at 10\.77\.0\.11) port .* has not answered for 2 s/u,
      [],
    ],
  ])('a GPU whose peer on another host %s ends its wait with the name of that peer', async (_, fault, named, more) => {
    const perf = join(repository, 'build/ncclrun-perf');
    const size = '--begin 65536 --end 65536 --factor 2 --iters 100000000 --warmup 5 --blocking 0 --check 0';
    const endless = `echo pid $$; exec ${perf} all_reduce ${size} --root 0 --type float --op sum --device cuda`;
    const variables = [...exported, ...more, '-x', 'NCCL_DEBUG=INFO', '-x', 'NCCLRUN_NET_TIMEOUT=2'];
    const options = ['-H', 'h1:1,h2:1', '--on-failure', 'shrink', '--tag-output=rank', ...variables];
    await using command = Command.start([...options, 'sh', '-c', endless], { cluster });
    const line = await command.line('stdout', /\[1\] pid \d+/u);
    await command.line('stderr', /\[1\] .*ready: 2 ranks/u);
    try {
      await fault(line.replace(/.*pid /u, ''));
      await command.line('stderr', named);
    } finally {
      await cluster.host('h1').exec('iptables', '-F');
    }
  });
});
