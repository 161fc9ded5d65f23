/** `ncclrun plan` as a user types it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { afterAll, describe, expect, it } from 'vitest';
import { planFromJson } from '../../control/plan/json.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { shapesOf } from '../rig/svg.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-plan-'));
afterAll(() => rmSync(directory, { recursive: true }));
const switches = join(repository, 'test/unit/fixtures/switches.xml');
const superchips = join(repository, 'test/unit/fixtures/superchips.xml');

/** Graphs of a machine with another number of GPUs. */
const oneGpu = write(
  'one-gpu.xml',
  `<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <gpu dev="0"/>
    </channel>
  </graph>
</graphs>
`,
);

async function prints(...argv: string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['plan', ...argv]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

function write(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const view = v.object({
  nodes: v.number(),
  ranks: v.number(),
  nChannels: v.number(),
  ring: v.object({
    nChannels: v.number(),
    bwIntra: v.number(),
    bwInter: v.number(),
    totalBw: v.number(),
    bottleneck: v.object({ bandwidth: v.number(), load: v.number() }),
    channels: v.array(v.object({ order: v.array(v.number()), nics: v.array(v.number()) })),
  }),
  memory: v.nullable(v.record(v.string(), v.number())),
  shapes: v.array(v.object({ hosts: v.number(), gpus: v.number() })),
  tuning: v.array(
    v.object({
      collective: v.string(),
      bytes: v.number(),
      predictedMicroseconds: v.number(),
      others: v.array(v.object({ algorithm: v.string(), predictedMicroseconds: v.number(), isPossible: v.boolean() })),
    }),
  ),
  rings: v.optional(v.array(v.array(v.number()))),
});

it('the plan of several hosts lists NICs, their GPUDirect and the NIC of each ring', async () => {
  const text = await prints('--topo', switches, '--nodes', '2', '--explain');
  expect(text).toMatch(/^host +net +NIC +port +Gb\/s +PCI +nearest ranks +GPUDirect$/mu);
  expect(text).toMatch(/^kind 0 +0 +mlx5_0 +1 +400 +0000:15:00\.0 +PIX 0 +ranks 0 1$/mu);
  expect(text).toMatch(/^kind 0 +1 +mlx5_1 .*no: every GPU is too far away \(NCCL_NET_GDR_LEVEL\)$/mu);
  expect(text).toMatch(/^kind 0 +1 +out +mlx5_0 +1 +PXN +the nearest$/mu);
  expect(await prints('--topo', switches)).not.toContain('GPUDirect');
});

async function planned(...argv: string[]): Promise<v.InferOutput<typeof view>> {
  return v.parse(view, JSON.parse(await prints(...argv, '--format', 'json')));
}

describe('ncclrun plan', () => {
  it('ncclrun plan prints the plan as text', async () => {
    const text = await prints('--topo', switches, '--nodes', '2');
    expect(text).toContain('6 ranks on 2 hosts');
    expect(text).toMatch(/^ring +\d+ /mu);
    expect(text).toMatch(/^allReduce +8589934592 /mu);
    expect(text).toMatch(/^ring: the fullest link is \S.* → \S.*, [\d.]+ of [\d.]+ GB\/s, and \d+ more as full$/mu);
  });

  it('ncclrun plan --format json prints consistent fields', async () => {
    const { nodes, ranks, nChannels, ring, tuning } = await planned(
      '--topo',
      switches,
      '--nodes',
      '3',
      '--bytes',
      '1K..4K',
    );
    expect({ nodes, ranks, sizes: tuning.map(({ bytes }) => bytes) }).toEqual({
      nodes: 3,
      ranks: 9,
      sizes: [1024, 2048, 4096],
    });
    expect(nChannels).toBe(ring.nChannels * 2);
    expect(ring.bottleneck.load).toBeLessThanOrEqual(ring.bottleneck.bandwidth * 1.001);
    expect(ring.bottleneck.load).toBeGreaterThan(ring.bottleneck.bandwidth / 2); // else twice as many channels would fit
    expect(ring.totalBw).toBeCloseTo(ring.nChannels * Math.min(ring.bwIntra, ring.bwInter));
    for (const { order, nics } of ring.channels) {
      expect(order.toSorted((one, other) => one - other)).toEqual([0, 1, 2]);
      expect(nics).toHaveLength(2);
    }
  });

  it('ncclrun plan shows the GPU memory of a communicator', async () => {
    const { memory } = await planned('--topo', switches);
    const { total = 0, ...parts } = memory ?? {};
    expect(Object.values(parts).reduce((sum, bytes) => sum + bytes, 0)).toBe(total);
    const text = `memory of each GPU: ${(total / 2 ** 20).toFixed(1)} MiB: rings 64.0, pairs `;
    expect(await prints('--topo', switches, '--explain')).toContain(text);
    // Between hosts, slots are memory of the host.
    const between = (await planned('--topo', switches, '--simulate-hosts', '3')).memory;
    expect(between).toMatchObject({ simple: 0 });
  });

  it('--full prints the rings over all ranks', async () => {
    const { rings, nChannels } = await planned('--topo', switches, '--nodes', '5', '--full');
    expect(rings).toHaveLength(nChannels);
    for (const ring of rings ?? []) expect(ring.toSorted((one, other) => one - other)).toEqual([...Array(15).keys()]);
  });

  it('ncclrun plan accepts hosts of different shapes', async () => {
    const { nodes, shapes } = await planned('--topo', `${switches}:2`, '--topo', `${superchips}:3`);
    expect({ nodes, hosts: shapes.map(({ hosts }) => hosts) }).toEqual({ nodes: 5, hosts: [2, 3] });
    expect(await prints('--topo', `${switches}:2`, '--topo', superchips, '--explain')).toMatch(/^minimum +3 +ring/mu);
  });

  it('--ranks distributes fewer ranks than GPUs evenly over the hosts', async () => {
    const { ranks, shapes } = await planned('--topo', switches, '--nodes', '3', '--ranks', '7');
    expect({ ranks, shapes }).toMatchObject({
      ranks: 7,
      shapes: [
        { hosts: 1, gpus: 3 },
        { hosts: 2, gpus: 2 },
      ],
    });
  });

  it("--format nccl-xml prints NCCL's graphs", async () => {
    const { root } = readXml(await prints('--topo', switches, '--format', 'nccl-xml'), 'graphs');
    expect({ name: root.name, graphs: root.children.length }).toEqual({ name: 'graphs', graphs: 5 });
  });

  it('a job runs the plan that --format engine prints', async () => {
    const written = await prints('--topo', switches, '--format', 'engine');
    const plan = planFromJson(written, 'plan.json');
    expect(plan.device).toBe('cuda');
    expect(plan.channels[0]?.tree).toHaveLength(plan.peers.length);
    const onProcessors = { environment: { NCCLRUN_DEVICE: 'host' } };
    const { stdout } = await Command.run(['plan', '--topo', switches, '--format', 'engine'], onProcessors);
    expect(planFromJson(stdout, 'plan.json').device).toBe('host');
    const file = write('engine.json', stdout);
    const words = ['-n', String(plan.peers.length), '--plan', file, join(repository, 'examples/all-reduce.ts')];
    expect(await Command.run(words)).toMatchObject({ status: 0, stderr: '' });
    const several = planFromJson(await prints('--topo', switches, '--nodes', '2', '--format', 'engine'), 'plan.json');
    expect({ device: several.device, hosts: several.hosts.length }).toEqual({ device: 'cuda', hosts: 2 });
  });

  it('--format svg draws a picture', async () => {
    expect(shapesOf(await prints('--topo', superchips, '--nodes', '2', '--format', 'svg'))[0]).toMatchObject({
      name: 'svg',
    });
  });

  it('--collective all predicts every collective and variant', async () => {
    const { tuning } = await planned('--topo', switches, '--collective', 'all', '--bytes', '1M');
    expect(tuning.map(({ collective }) => collective)).toContain('allToAll');
    for (const { predictedMicroseconds, others } of tuning) {
      expect(predictedMicroseconds).toBeGreaterThan(0);
      const possible = others.filter(({ isPossible }) => isPossible);
      for (const other of possible) expect(other.predictedMicroseconds).toBeGreaterThanOrEqual(predictedMicroseconds);
    }
    expect(tuning.flatMap(({ others }) => others.map(({ algorithm }) => algorithm))).toContain('copyEngine');
  });
});

/** The way to the network is narrower than the slowest channels that are tried. */
const narrow = write(
  'narrow.xml',
  `<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">
      <pci busid="0000:02:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0"/></pci>
      <pci busid="0000:03:00.0" class="0x030200"><gpu dev="1" sm="90" rank="1"/></pci>
      <pci busid="0000:04:00.0" class="0x020700"><nic><net name="mlx5_0" dev="0" speed="400000" port="1"/></nic></pci>
    </pci>
  </cpu>
</system>
`,
);

describe('the load of links', () => {
  it.each([switches, superchips, narrow])('the channels on %s load no link beyond its bandwidth', async (file) => {
    expect(await prints('--topo', file, '--nodes', '2', '--verify')).toContain('No link has more than it carries.');
  });
});

describe('ncclrun plan --diff', () => {
  it('ncclrun plan --diff reports equal plans', async () => {
    const one = write('one.json', await prints('--topo', switches, '--format', 'json'));
    expect(await prints('--diff', one, one)).toBe('The plans are equal.\n');
  });

  it('ncclrun plan --diff lists differences and exits with 1', async () => {
    const one = write('one.json', await prints('--topo', switches, '--format', 'json'));
    const other = write('other.json', await prints('--topo', superchips, '--format', 'json'));
    const { status, stdout } = await Command.run(['plan', '--diff', one, other]);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^ring totalBw /mu);
  });
});

describe('environment variables of the plan', () => {
  const heeding = (environment: NodeJS.ProcessEnv) =>
    Command.run(['plan', '--topo', switches, '--bytes', '1M..1M'], { environment });

  it('ncclrun plan obeys NCCL_GRAPH_FILE and NCCL_ALGO and lists them', async () => {
    const graphs = write('graphs.xml', await prints('--topo', switches, '--format', 'nccl-xml'));
    const usual = await prints('--topo', switches, '--bytes', '1M..1M');
    const { status, stdout } = await heeding({ NCCL_GRAPH_FILE: graphs, NCCL_ALGO: 'allreduce:tree' });
    expect(status).toBe(0);
    expect(stdout).toContain(`  heeded: NCCL_GRAPH_FILE=${graphs}\n`);
    expect(stdout).toMatch(/^allReduce +1048576 +tree /mu);
    expect(stdout.replaceAll(/^ {2}heeded:.*\n/gmu, '').split('\ncollective')[0]).toBe(usual.split('\ncollective')[0]);
  });

  it.each([
    [{ NCCL_GRAPH_FILE: switches }, /NCCL_GRAPH_FILE: \S+switches\.xml:1:1.*a file of graphs begins with <graphs>/],
    [
      { NCCL_GRAPH_FILE: 'nix.xml' },
      /NCCL_GRAPH_FILE: there is no file nix\.xml\n {2}next: correct the file, or unset NCCL_GRAPH_FILE/,
    ],
    [{ NCCL_GRAPH_FILE: oneGpu }, /NCCL_GRAPH_FILE: \S+one-gpu\.xml:3:5: <channel>: has 1 GPUs, expected each of/],
    [{ NCCL_ALGO: 'allreduce:star' }, /NCCL_ALGO=allreduce:star: 'star' is unknown/],
    [{ NCCL_CROSS_NIC: '7' }, /NCCL_CROSS_NIC/],
  ])('ncclrun plan rejects the environment %j', async (environment, sentence) => {
    const { status, stdout, stderr } = await heeding(environment);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/^\s+at /mu);
  });
});

describe('invalid arguments', () => {
  const bad = write('bad.xml', '<system version="1">\n  <cpu numaid="0" arch="x86_64"\n</system>\n');
  it.each<[string[], RegExp]>([
    [['--topo', 'nix.xml'], /there is no file nix\.xml/],
    [['--topo', directory], /is a directory/],
    [['--topo', bad], /bad\.xml:3:1: /],
    [['--topo', write('empty.xml', '<system version="1"/>')], /no GPU/],
    [['--topo', switches, '--ranks', '5'], /5 ranks on 1 host/],
    [['--topo', switches, '--nodes', '4', '--ranks', '3'], /3 ranks for 4 hosts/],
    [['--topo', switches, '--collective', 'allreduce'], /did you mean all_reduce\?/],
    [['--topo', switches, '--bytes', '8..x'], /--bytes is "8\.\.x"/],
    [['--topo', switches, '--topo', superchips, '--nodes', '2'], /--nodes 2 with 2 topologies/],
    [['--topo', switches, 'dgx'], /"dgx" is no option/],
    [['--topo', `${switches}:0`], /switches\.xml:0: 0 hosts/],
    [['--topo', `${switches}:2`, '--nodes', '3'], /switches\.xml:2 and --nodes 3 both say how many hosts there are/],
    [['--diff', switches], /takes two files/],
    [['--diff', switches, switches], /is no JSON/],
  ])('ncclrun plan rejects the arguments %j', async (argv, sentence) => {
    const { status, stdout, stderr } = await Command.run(['plan', ...argv]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/^\s+at /mu); // no stack trace
    expect(stderr).toMatch(/^ {2}next: /mu);
  });
});
