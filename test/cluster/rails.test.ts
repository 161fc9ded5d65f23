/** Hosts with a second interface in a subnet of their own: connections between them share both. */
import { join } from 'node:path';
import * as v from 'valibot';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const printed = v.object({
  sum: v.number(),
  hosts: v.array(v.object({ name: v.string(), nics: v.array(v.object({ name: v.string(), address: v.string() })) })),
});

describeIf(clusterUnavailable(), 'two hosts with two interfaces each', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    await cluster.inLogin('ip', 'link', 'add', 'rail-h1', 'type', 'veth', 'peer', 'name', 'rail-h2');
    for (const [index, host] of cluster.hosts.entries()) {
      const cable = `rail-${host.name}`;
      await cluster.inLogin('ip', 'link', 'set', cable, 'netns', join(cluster.state, host.name, 'net'));
      await host.exec('ip', 'link', 'set', cable, 'name', 'eth1');
      await host.exec('ip', 'address', 'add', `10.80.0.${11 + index}/24`, 'dev', 'eth1');
      await host.exec('ip', 'link', 'set', 'eth1', 'up');
    }
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const nicsWith = async (...variables: readonly string[]): Promise<string[]> => {
    const { nics, stderr } = await runWith(...variables);
    expect(stderr).toBe('');
    return nics;
  };

  const runWith = async (...variables: readonly string[]): Promise<{ nics: string[]; stderr: string }> => {
    const exports = variables.flatMap((variable) => ['-x', variable]);
    const program = [process.execPath, join(repository, 'test/rig/programs/nics.ts')];
    const words = ['-H', 'h1:2,h2:2', ...exports, '--init-timeout', '20', ...program];
    const { status, stdout, stderr } = await Command.run(words, { cluster });
    expect(status, stderr).toBe(0);
    const { sum, hosts } = v.parse(printed, JSON.parse(stdout.slice(stdout.indexOf('{'))));
    expect(sum).toBe(4);
    const nics = hosts.map(
      (host) => `${host.name}: ${host.nics.map((nic) => `${nic.name} ${nic.address}`).join(', ')}`,
    );
    return { nics, stderr };
  };

  // These hosts share the sysfs of their login node, so that they know no speed.
  it('connections use the common interface alone where no speed is known', async () => {
    expect(await nicsWith()).toEqual(['h1: eth0 10.77.0.11', 'h2: eth0 10.77.0.12']);
  });

  it('connections use both interfaces where the user names both', async () => {
    expect(await nicsWith('NCCL_SOCKET_IFNAME=eth')).toEqual([
      'h1: eth0 10.77.0.11, eth1 10.80.0.11',
      'h2: eth0 10.77.0.12, eth1 10.80.0.12',
    ]);
  });

  it('connections use the interface that NCCL_SOCKET_IFNAME names alone', async () => {
    expect(await nicsWith('NCCL_SOCKET_IFNAME=eth1')).toEqual(['h1: eth1 10.80.0.11', 'h2: eth1 10.80.0.12']);
  });

  it('a second interface that a firewall closes on one host is not used, and the notice names it', async () => {
    const h2 = cluster.host('h2');
    const rule = ['INPUT', '-i', 'eth1', '-p', 'tcp', '--syn', '-j', 'DROP'];
    await h2.exec('iptables', '-I', ...rule);
    const { nics, stderr } = await runWith('NCCL_SOCKET_IFNAME=eth');
    await h2.exec('iptables', '-D', ...rule);
    expect(nics).toEqual(['h1: eth0 10.77.0.11', 'h2: eth0 10.77.0.12']);
    expect(stderr).toMatch(/h1 cannot reach h2 from eth1 \(10\.80\.0\.11\) at eth1 \(10\.80\.0\.12\)/);
  });

  it('connections use the common interface alone where a host lacks the other one', async () => {
    await cluster.host('h2').exec('ip', 'link', 'set', 'eth1', 'down');
    expect(await nicsWith('NCCL_SOCKET_IFNAME=eth')).toEqual(['h1: eth0 10.77.0.11', 'h2: eth0 10.77.0.12']);
  });
});
