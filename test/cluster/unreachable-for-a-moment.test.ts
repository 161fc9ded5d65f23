/** A host that cannot be reached while ranks connect is tried again: a network may be away for a moment. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'a host that is unreachable for a moment', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('the ranks connect once the host is reachable', async () => {
    const go = join(cluster.state, 'go');
    const reduce = `exec "$0" --disable-warning=ExperimentalWarning ${join(repository, 'examples/all-reduce.ts')}`;
    const script = `echo up >&2; until [ -e ${go} ]; do sleep 0.02; done; ${reduce}`;
    await using command = Command.start(['-H', 'h1:1,h2:1', 'sh', '-c', script, process.execPath], { cluster });
    for (const rank of [0, 1]) await command.line('stderr', new RegExp(`^\\[${rank}\\] up`));
    const { address } = cluster.host('h2');
    const rule = [
      'OUTPUT',
      '-d',
      address,
      '-p',
      'tcp',
      '--syn',
      '-j',
      'REJECT',
      '--reject-with',
      'icmp-host-unreachable',
    ];
    const host = cluster.host('h1');
    await host.exec('iptables', '-I', ...rule);
    await writeFile(go, '');
    const tried = async (): Promise<boolean> =>
      /^ *[1-9]\d* .*REJECT/m.test(await host.exec('iptables', '-L', 'OUTPUT', '-v', '-n', '-x'));
    while (!(await tried())) await delay(2);
    await host.exec('iptables', '-D', ...rule);
    const { status, stdout, stderr } = await command.endedWithin(20_000);
    expect({ status, right: stdout.includes('every element is 3') }, stderr).toEqual({ status: 0, right: true });
  });
});
