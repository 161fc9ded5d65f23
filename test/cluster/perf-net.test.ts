/** `ncclrun perf net` between hosts of which two cannot reach each other. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'perf net on several hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const measure = (...words: readonly string[]) =>
    Command.run(['perf', 'net', '-H', 'h1,h2,h3', '--sizes', '64K', ...words], { cluster });

  it('one rank on each host measures every pair', async () => {
    const { status, stdout, stderr } = await measure();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const rows = stdout.split('\n').filter((line) => /^ {2}h\d eth0 +h\d eth0( +\d+\.\d\d){3}$/.test(line));
    expect(rows).toHaveLength(6);
  });

  it('a pair that a firewall separates is named with both ends, and the others are measured', async () => {
    await cluster.host('h3').exec('iptables', '-A', 'INPUT', '-s', cluster.host('h2').address, '-j', 'REJECT');
    const { status, stdout, stderr } = await measure();
    expect(status, stderr).toBe(1);
    expect(stdout).toMatch(
      /^ {2}h2 eth0 +h3 eth0 +failed: eth0 \(10\.77\.0\.12\) of h2: .*; eth0 \(10\.77\.0\.13\) of h3: .*has not answered/m,
    );
    expect(stdout).toMatch(/^# 2 of 6 failed$/m);
    expect(stdout.match(/^ {2}h1 eth0 +h[23] eth0( +\d+\.\d\d){3}$/gm)).toHaveLength(2);
    expect(stdout).toMatch(/^# +h2 +\d+\.\d\d\*? +- +x$/m);
  });
});
