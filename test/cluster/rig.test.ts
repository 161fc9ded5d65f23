/** The cluster itself: what the other tests rely on. */
import { existsSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { alive } from '../rig/processes.ts';

const quick = ['ssh', '-o', 'ConnectTimeout=1', '-o', 'BatchMode=yes'];

describeIf(clusterUnavailable(), 'a cluster of namespaces', () => {
  it('ssh reaches each host, which has its own name, files and processes', async () => {
    await using cluster = await Cluster.start(3);
    const ours = await mkdtemp('/tmp/ncclrun-rig-');
    const say = `hostname; [ -e ${ours} ]; echo $?; touch /tmp/of-a-host; ls -d '${repository}/test'`;
    const answers = await Promise.all(cluster.hosts.map((host) => cluster.inLogin('ssh', host.name, say)));
    expect(answers).toEqual(cluster.hosts.map((host) => `${host.name}\n1\n${repository}/test\n`));
    await rmdir(ours);
    expect(existsSync('/tmp/of-a-host')).toBe(false);
    await cluster.host('h1').empty(); // sshd ends its own children a moment after it has answered
  });

  it('each host can be disconnected, frozen and restored independently', async () => {
    await using cluster = await Cluster.start(2);
    const [first, second] = [cluster.host('h1'), cluster.host('h2')];
    const reach = (name: string) => cluster.inLogin(...quick, name, 'hostname');

    await first.cut();
    await expect(reach('h1')).rejects.toThrow(/timed out|No route/);
    await first.uncut();
    await first.reset();
    await expect(reach('h1')).rejects.toThrow(/refused/);
    await first.accept();
    await expect(reach('h1')).resolves.toBe('h1\n');

    await second.freeze();
    await expect(reach('h2')).rejects.toThrow(/banner exchange/); // the kernel accepts, nobody answers
    await second.thaw();
    await second.rate('100mbit');
    await expect(reach('h2')).resolves.toBe('h2\n');
    await second.unrate();
    await second.powerloss();
    await expect(reach('h2')).rejects.toThrow(/timed out|No route/);
    await second.boot();
    await expect(reach('h2')).resolves.toBe('h2\n');
  });

  it('a disposed cluster leaves neither processes nor files, even when a host is frozen', async () => {
    const cluster = await Cluster.start(2);
    const inits = cluster.hosts.map((host) => host.init);
    await cluster.host('h2').freeze();
    await cluster[Symbol.asyncDispose]();
    expect(inits.filter(alive)).toEqual([]);
    expect(existsSync(cluster.state)).toBe(false);
  });
});
