/** A network plugin carries the data of ranks on different hosts. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'a network plugin between hosts', () => {
  let cluster: Cluster;
  let directory: string;
  let plugin: string;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-plugin-'));
    await cp(join(repository, 'examples/net-plugin'), directory, { recursive: true });
    await promisify(execFile)('make', ['-C', directory]);
    plugin = join(directory, 'libnccl-net-example.so');
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const sumWith = (
    ...variables: readonly string[]
  ): Promise<{ status: number | null; stdout: string; stderr: string }> => {
    const exports = variables.flatMap((variable) => ['-x', variable]);
    const program = [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      join(repository, 'examples/all-reduce.ts'),
    ];
    return Command.run(['-H', 'h1:2,h2:2', ...exports, ...program], { cluster });
  };

  it('ranks add up over the plugin that NCCL_NET_PLUGIN names', async () => {
    const { status, stdout, stderr } = await sumWith(
      `NCCL_NET_PLUGIN=${plugin}`,
      'NCCL_DEBUG=INFO',
      'NCCL_DEBUG_SUBSYS=NET',
    );
    expect({ status, right: stdout.includes('every element is 10') }, stderr).toEqual({ status: 0, right: true });
    expect(stderr).toContain('network plugin Example');
  });

  it('a plugin that cannot be opened ends the job with its name and the reason', async () => {
    const { status, stderr } = await sumWith('NCCL_NET_PLUGIN=/nowhere/libnccl-net-none.so');
    expect(status).not.toBe(0);
    expect(stderr).toContain(
      'NCCL_NET_PLUGIN=/nowhere/libnccl-net-none.so: /nowhere/libnccl-net-none.so: cannot open shared object file: No such file or directory',
    );
  });

  it('a name in NCCL_NET that no network has ends the job with those that there are', async () => {
    const { status, stderr } = await sumWith(`NCCL_NET_PLUGIN=${plugin}`, 'NCCL_NET=IB');
    expect(status).not.toBe(0);
    expect(stderr).toContain('NCCL_NET=IB: this host has no such network; it has Example, Socket');
  });

  /** Host h1's ranks have the first variables, h2's the second. */
  const sumOfTwo = (first: string, second: string): ReturnType<typeof sumWith> => {
    const script = `if [ "$(hostname)" = h1 ]; then export ${first}; else export ${second}; fi; exec "$@"`;
    const program = [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      join(repository, 'examples/all-reduce.ts'),
    ];
    return Command.run(['-H', 'h1:2,h2:2', 'sh', '-c', script, 'sh', ...program], { cluster });
  };

  it.each(['h1', 'h2'])('a name in NCCL_NET that no network has on %s alone is refused there', async (host) => {
    const variables = ['NCCL_NET=Nope', 'NCCL_NET_PLUGIN='];
    const [first = '', second = ''] = host === 'h1' ? variables : variables.toReversed();
    const { status, stderr } = await sumOfTwo(first, second);
    expect(status).not.toBe(0);
    expect(stderr).toMatch(
      new RegExp(`rank \\d of 4 on ${host}: NCCL_NET=Nope: this host has no such network; it has Socket`),
    );
  });

  // Ten times, because either host may speak first.
  it('hosts with unlike networks are named with both networks, whoever speaks first', async () => {
    for (let i = 0; i < 10; i++) {
      const { status, stderr } = await sumOfTwo(`NCCL_NET_PLUGIN=${plugin}`, 'NCCL_NET=Socket');
      expect(status).not.toBe(0);
      expect(stderr).toMatch(
        /the hosts' networks differ: rank \d on host h\d uses (Socket|Example), and rank \d on host h\d uses (Socket|Example)\. Give all hosts/,
      );
      expect(stderr).not.toContain("the peer's address is not one of");
    }
  });

  it('NCCL_NET=Socket takes sockets where there is a plugin, too', async () => {
    const { status, stderr } = await sumWith(`NCCL_NET_PLUGIN=${plugin}`, 'NCCL_NET=Socket');
    expect(status, stderr).toBe(0);
  });
});
