/** A network that loses resets, which nobody sends again: connections have to be ended in order. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { partsOn } from '../rig/faults.ts';
import { until } from '../rig/until.ts';

/** At once, so that each has to wait for a processor and is ended with bytes that it has not read. */
const JOBS = 16;

describeIf(clusterUnavailable(), 'a host that receives no TCP resets', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    const resets = ['--protocol', 'tcp', '--tcp-flags', 'RST', 'RST'];
    await cluster.host('h2').exec('iptables', '--insert', 'INPUT', ...resets, '--jump', 'DROP');
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each(['ssh2', 'openssh'])('%s leaves no sshd process on the host', async (rsh) => {
    const argv = ['--rsh', rsh, '-H', 'h1:1,h2:1', 'true'];
    const jobs = await Promise.all(Array.from({ length: JOBS }, () => Command.run(argv, { cluster })));
    expect(new Set(jobs.map(({ status }) => status))).toEqual(new Set([0]));
    await until('no sshd is left', () => partsOn(cluster.host('h2'), 'sshd').length === 0, 5000);
  });
});
