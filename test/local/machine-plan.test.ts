/** Ranks on processors take the ways that a topology file's GPUs would: the bytes on every connection prove it. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeXml } from '../../control/topology/write-xml.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { parseEdges, ringsOf } from '../rig/edges.ts';
import { PARTS, TEMPLATE } from '../rig/shared-address.ts';

const SIZE = 4_000_000;
let directory = '';
let topology = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-machine-'));
  topology = join(directory, 'crossed.xml');
  await writeFile(topology, writeXml(crossedGpus()));
  program = await compileWithEngine('test/rig/programs/edges.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

async function run(ranks: number, variables: Readonly<Record<string, string>>) {
  const set = Object.entries(variables).flatMap(([name, value]) => ['-x', `${name}=${value}`]);
  return Command.run(['-n', String(ranks), ...set, '--tag-output=none', program, String(SIZE)]);
}

async function rings(ranks: number, variables: Readonly<Record<string, string>>): Promise<Map<number, number[]>> {
  const { status, stdout, stderr } = await run(ranks, { NCCL_ALGO: 'ring', ...variables });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return ringsOf(parseEdges(stdout).get(SIZE) ?? []);
}

describe('ranks on a topology file', () => {
  it('rings follow the NVLinks on the requested number of channels', async () => {
    expect(await rings(4, {})).toEqual(new Map([[0, [0, 1, 2, 3]]]));
    const around = await rings(4, { NCCL_TOPO_FILE: topology, NCCL_MIN_NCHANNELS: '4' });
    expect(new Set(around.keys())).toEqual(new Set([0, 1, 2, 3]));
    for (const ring of around.values()) expect(['0,2,1,3', '0,3,1,2']).toContain(ring.join());
  });

  it('ranks use the first GPUs, and stay in rank order when there are too few GPUs', async () => {
    const few = await rings(3, { NCCL_TOPO_FILE: topology });
    expect(few.get(0)).toHaveLength(3);
    expect(await rings(5, { NCCL_TOPO_FILE: topology })).toEqual(new Map([[0, [0, 1, 2, 3, 4]]]));
  });

  it('ranks may share parts of a GPU or use GPUs that the file does not describe', async () => {
    const parts = join(directory, 'parts.xml');
    await writeFile(parts, PARTS);
    expect((await rings(4, { NCCL_TOPO_FILE: parts })).get(0)?.toSorted()).toEqual([0, 1, 2, 3]);
    const template = join(directory, 'template.xml');
    await writeFile(template, TEMPLATE);
    expect((await rings(2, { NCCL_TOPO_FILE: template })).get(0)).toEqual([0, 1]);
  });

  it('the tree algorithm reduces along the tree of the file', async () => {
    const { status, stdout } = await run(4, { NCCL_TOPO_FILE: topology, NCCL_ALGO: 'tree', NCCL_PROTO: 'simple' });
    expect(status).toBe(0);
    const used = (parseEdges(stdout).get(SIZE) ?? []).filter(({ sends, bytes }) => sends && bytes > 0);
    // A chain: two ends with one neighbour, two ranks between with two, each way.
    const degrees = [0, 1, 2, 3].map((rank) => used.filter((edge) => edge.rank === rank).length);
    expect(degrees.toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2]);
    for (const { rank, peer } of used)
      expect(['02', '20', '21', '12', '13', '31', '30', '03']).toContain(`${rank}${peer}`);
  });

  it('NCCL_GRAPH_DUMP_FILE writes the graphs and NCCL_GRAPH_FILE reads them', async () => {
    const dump = join(directory, 'graphs.xml');
    const found = await rings(4, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_DUMP_FILE: dump });
    const written = await readFile(dump, 'utf8');
    expect(written).toMatch(/^<graphs version="1">/u);
    const swapped = written.replaceAll('dev="0x1"', 'dev="one"').replaceAll('dev="0x2"', 'dev="0x1"');
    await writeFile(dump, swapped.replaceAll('dev="one"', 'dev="0x2"'));
    const given = await rings(4, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_FILE: dump });
    const other = new Map([...found].map(([channel, ring]) => [channel, ring.map((rank) => [0, 2, 1, 3][rank] ?? -1)]));
    expect(given).toEqual(other);
  });

  it('a job rejects invalid graph files and variable values', async () => {
    const graphs = await run(4, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_FILE: join(directory, 'none.xml') });
    expect(graphs.status).toBe(125);
    expect(graphs.stderr).toContain('NCCL_GRAPH_FILE: ');
    expect(graphs.stderr).toContain('next: correct the file, or unset NCCL_GRAPH_FILE');
    // Graphs of all four GPUs, where three of them are used.
    const four = join(directory, 'four.xml');
    await rings(4, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_DUMP_FILE: four });
    const three = await run(3, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_FILE: four });
    expect(three.status).not.toBe(0);
    expect(three.stderr).toMatch(new RegExp(`NCCL_GRAPH_FILE: ${four}:\\d+:\\d+: <`));
    const alone = await run(2, { NCCL_GRAPH_FILE: join(directory, 'none.xml') });
    expect(alone.status).toBe(125);
    expect(alone.stderr).toContain(`NCCL_GRAPH_FILE: ${join(directory, 'none.xml')}: no such file or directory`);
    const number = await run(2, { NCCL_MIN_NCHANNELS: 'many' });
    expect(number.status).not.toBe(0);
    expect(number.stderr).toContain('NCCL_MIN_NCHANNELS=many: a whole number is wanted');
    const level = await run(4, { NCCL_TOPO_FILE: topology, NCCL_P2P_LEVEL: 'near' });
    expect(level.status).not.toBe(0);
    expect(level.stderr).toContain('NCCL_P2P_LEVEL=near: one of LOC, ');
    const dump = await run(4, { NCCL_TOPO_FILE: topology, NCCL_GRAPH_DUMP_FILE: join(directory, 'no/graphs.xml') });
    expect(dump.status).toBe(0);
    expect(dump.stderr).toContain('NCCL_GRAPH_DUMP_FILE is not written: ');
  });
});
