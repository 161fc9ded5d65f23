/** A link or NIC of a running job that is much slower than its equals is named, with its rate. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

const HOSTS = ['h1', 'h2', 'h3', 'h4'];

describeIf(clusterUnavailable(), 'a slow network', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(HOSTS.length);
    directory = await mkdtemp(join(repository, 'build/test-slow-link-'));
    program = await compileWithEngine('test/rig/programs/straggle.c', directory);
    for (const name of HOSTS) await cluster.host(name).rate('400mbit');
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  /** All-reduces of a MiB, by rings: a link to each neighbour. */
  async function verdictsOf(): Promise<{ readonly verdicts: readonly object[]; readonly stderr: string }> {
    const words = ['--straggler-window', '2', '-H', HOSTS.map((name) => `${name}:1`).join(','), '-x', 'NCCL_ALGO=ring'];
    const { verdicts, outcome } = await Command.result([...words, program, '45', '0', '0', '0', '262144'], { cluster });
    return { verdicts, stderr: outcome.stderr };
  }

  it('a host whose cable is slow both ways is named', async () => {
    await cluster.host('h2').rate('50mbit');
    const { verdicts, stderr } = await verdictsOf();
    expect(verdicts, stderr).toMatchObject([
      { kind: 'slow-nic', confidence: 'likely', blamed: [{ ranks: '1', host: 'h2' }], communicator: null },
    ]);
    expect(stderr).toMatch(
      /^ncclrun: the network of h2 \(eth0\), on each of its 2 links carries \S+ MB\/s while it has something to carry, the median of 2 others \S+ [MG]B\/s; it was busy \d+ % of the time/m,
    );
  });

  it('a link that is slow on the way from one host to another is named with both ends', async () => {
    await cluster.host('h2').rate('400mbit');
    await cluster.host('h3').rateTo(cluster.host('h4'), '50mbit', '400mbit');
    const { verdicts, stderr } = await verdictsOf();
    expect(verdicts, stderr).toMatchObject([
      {
        kind: 'slow-link',
        blamed: [
          { ranks: '2', host: 'h3' },
          { ranks: '3', host: 'h4' },
        ],
      },
    ]);
    expect(stderr).toMatch(/^ncclrun: the link from h3 \(eth0\) to h4 \(eth0\) carries /m);
  });
});
