/** Rings over several hosts go through each as its topology file says. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeXml } from '../../control/topology/write-xml.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { parseEdges, ringsOf } from '../rig/edges.ts';

const SIZE = 4_000_000;

describeIf(clusterUnavailable(), 'ranks of several hosts on a topology file', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    directory = await mkdtemp(join(repository, 'build/test-machine-'));
    program = await compileWithEngine('test/rig/programs/edges.c', directory);
    await writeFile(join(directory, 'crossed.xml'), writeXml(crossedGpus(true)));
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('rings follow the NVLinks of each host and continue on the next host', async () => {
    const dump = join(directory, 'graphs.xml');
    const variables = [
      `NCCL_TOPO_FILE=${join(directory, 'crossed.xml')}`,
      `NCCL_GRAPH_DUMP_FILE=${dump}`,
      'NCCL_ALGO=ring',
      'NCCL_MIN_NCHANNELS=2',
    ].flatMap((word) => ['-x', word]);
    const words = ['-H', 'h1:4,h2:4,h3:4', ...variables, '--tag-output=none', program, String(SIZE)];
    const { status, stdout, stderr } = await Command.run(words, { cluster });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const rings = ringsOf(parseEdges(stdout).get(SIZE) ?? []);
    expect(rings.size).toBe(2);
    for (const ring of rings.values()) {
      expect(ring).toHaveLength(12);
      const places = ring.map((rank) => ({ host: Math.floor(rank / 4), local: rank % 4 }));
      const crossings = places.filter(({ host }, at) => host !== places.at(at - 1)?.host);
      expect(crossings).toHaveLength(3);
      for (const [at, { host, local }] of places.entries()) {
        const before = places.at(at - 1);
        if (before?.host === host)
          expect(['02', '20', '21', '12', '13', '31', '30', '03']).toContain(`${before.local}${local}`);
      }
    }
    expect(await readFile(dump, 'utf8')).toMatch(/<net dev="0"\/>/u);
  });

  it('a job reports an invalid NCCL_P2P_LEVEL and continues without it', async () => {
    const variables = [`NCCL_TOPO_FILE=${join(directory, 'crossed.xml')}`, 'NCCL_P2P_LEVEL=near', 'NCCL_ALGO=ring'];
    const words = ['-H', 'h1:2,h2:2', ...variables.flatMap((word) => ['-x', word]), '--tag-output=none'];
    const { status, stdout, stderr } = await Command.run([...words, program, String(SIZE)], { cluster });
    expect(status).toBe(0);
    expect(stderr).toContain('h1: NCCL_P2P_LEVEL=near: one of LOC, ');
    expect(ringsOf(parseEdges(stdout).get(SIZE) ?? [])).toEqual(new Map([[0, [0, 1, 2, 3]]]));
  });
});
