/** What `ncclrun doctor` has hosts find out with each other: a firewall between two of them, and a working directory that is not shared. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as v from 'valibot';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const document = v.object({
  findings: v.array(
    v.object({ check: v.string(), answer: v.string(), host: v.nullable(v.string()), message: v.string() }),
  ),
});

describeIf(clusterUnavailable(), 'hosts that look together', () => {
  let cluster: Cluster;
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-doctor-together-'));
    cluster = await Cluster.start(4);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('a firewall and a directory of its own are named with their hosts, and nothing is left in the directory', async () => {
    const [h3, h4] = [cluster.host('h3'), cluster.host('h4')];
    await h4.exec('mount', '-t', 'tmpfs', 'tmpfs', directory);
    // Ports that doctor chooses from, and not those of a job's own connections.
    const ports = ['--protocol', 'tcp', '--destination-port', '20000:31999'];
    await h3.exec('iptables', '--insert', 'OUTPUT', ...ports, '--destination', h4.address, '--jump', 'DROP');
    const words = ['doctor', '-H', 'h1,h2,h3,h4', '--quick', '--json'];
    const { stdout, stderr } = await Command.run(words, { cluster, directory });
    const { findings } = v.parse(document, JSON.parse(stdout));
    const bad = findings.filter(
      ({ check, answer }) => (check === 'network.mesh' || check === 'files.shared') && answer !== 'ok',
    );
    expect(bad, stderr).toEqual([
      {
        check: 'network.mesh',
        answer: 'fail',
        host: 'h3',
        message: expect.stringMatching(/^does not reach h4 at \S+, port \d+: connection timed out$/u),
      },
      { check: 'files.shared', answer: 'note', host: 'h4', message: expect.stringMatching(/not that of h1/u) },
    ]);
    expect(await readdir(directory)).toEqual([]);
  });
});
