/** What a topology's elements and attributes may be: the borders of every range, and where elements stand. */
import { describe, expect, test } from 'vitest';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { graphsXml } from '../../control/planner/search/graph-xml.ts';
import type { Graph } from '../../control/planner/search/graph.ts';
import { readGraphs } from '../../control/planner/search/read-graphs.ts';
import { linkLoads } from '../../control/planner/verify/link-loads.ts';
import { checkTopology } from '../../control/topology/check.ts';
import { TopologyError } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { powerTopology } from '../rig/power.ts';

const PARTS = {
  cpu: { numaid: '0' },
  pci: { busid: '0000:01:00.0' },
  gpu: { dev: '0' },
  net: { name: 'eth0' },
  nvlink: { target: 'x', count: '1' },
  c2c: { bw: '1', count: '1' },
} as const;
type Part = keyof typeof PARTS;

/** A topology with one element of each kind, one of them with other attributes; null: without that one. */
function topology(part: Part, changes: Readonly<Record<string, string | null>>): string {
  const tag = (name: Part): string => {
    const attributes = Object.entries({ ...PARTS[name], ...(name === part ? changes : {}) });
    return `<${[name, ...attributes.flatMap(([key, value]) => (value === null ? [] : [`${key}="${value}"`]))].join(' ')}`;
  };
  const gpu = `${tag('gpu')}>${tag('nvlink')}/>${tag('c2c')}/></gpu>`;
  return `<system version="1">${tag('cpu')}>${tag('pci')}>${gpu}<nic>${tag('net')}/></nic></pci></cpu></system>`;
}

function check(xml: string): void {
  checkTopology(readXml(xml, 't.xml').root);
}

const SIGNED = [-(2 ** 31), 2 ** 31 - 1] as const;
const IDENTIFIER = [0, 0xffff_ffff] as const;

describe('attributes', () => {
  test.each<readonly [Part, string, readonly [number, number]]>([
    ['cpu', 'numaid', [-1, 65_535]],
    ['cpu', 'familyid', SIGNED],
    ['cpu', 'modelid', SIGNED],
    ['pci', 'vendor', IDENTIFIER],
    ['pci', 'device', IDENTIFIER],
    ['pci', 'subsystem_vendor', IDENTIFIER],
    ['pci', 'subsystem_device', IDENTIFIER],
    ['gpu', 'dev', [0, 65_535]],
    ['gpu', 'sm', [0, 1000]],
    ['gpu', 'rank', [0, 2 ** 31 - 1]],
    ['gpu', 'gdr', SIGNED],
    ['gpu', 'mlopart', [0, 1024]],
    ['net', 'dev', [0, 65_535]],
    ['net', 'speed', SIGNED],
    ['net', 'port', SIGNED],
    ['net', 'maxconn', SIGNED],
    ['net', 'gdr', SIGNED],
    ['net', 'coll', SIGNED],
    ['net', 'net', [0, 1]],
    ['nvlink', 'count', [1, 1024]],
    ['nvlink', 'tclass', IDENTIFIER],
    ['c2c', 'bw', [0, 10_000_000]],
    ['c2c', 'count', [1, 1024]],
  ])('<%s %s> has the range %j', (part, name, [min, max]) => {
    for (const value of [min, max]) expect(() => check(topology(part, { [name]: String(value) }))).not.toThrow();
    for (const value of [min - 1, max + 1])
      expect(() => check(topology(part, { [name]: String(value) }))).toThrow(
        new RegExp(`t\\.xml.*: ${name}="${value}", expected a whole number from ${min} to ${max}$`, 'u'),
      );
  });

  test.each<readonly [Part, Record<string, string | null>, string]>([
    ['cpu', { numaid: null }, 'the attribute numaid is missing'],
    ['pci', { busid: null }, 'the attribute busid is missing'],
    ['pci', { busid: 'here' }, 'busid="here" is no PCI address'],
    ['pci', { link_width: '33' }, 'link_width="33", expected'],
    ['pci', { link_speed: 'fast' }, 'link_speed="fast" is no speed'],
    ['pci', { class: 'gpu' }, 'class="gpu" is no class'],
    ['net', { name: null }, 'the attribute name is missing'],
    ['net', { latency: 'low' }, 'latency="low", expected a number'],
    ['nvlink', { target: null }, 'the attribute target is missing'],
    ['nvlink', { count: null }, 'the attribute count is missing'],
    ['nvlink', { tclass: '0x030200' }, 'target="x" is no PCI address'],
    ['c2c', { bw: null }, 'the attribute bw is missing'],
    ['c2c', { count: null }, 'the attribute count is missing'],
  ])('<%s> with %j is refused', (part, changes, reason) => {
    expect(() => check(topology(part, changes))).toThrow(TopologyError);
    expect(() => check(topology(part, changes))).toThrow(reason);
  });
});

const pci = (busid: string, inside = ''): string => `<pci busid="${busid}">${inside}</pci>`;

const system = (...inside: string[]): string => `<system version="1">${inside.join('')}</system>`;

const cpu = (inside: string, hash = ''): string => `<cpu numaid="0"${hash}>${inside}</cpu>`;

describe('elements', () => {
  const gpu = '<gpu dev="0"/>';

  test.each([
    ['<graphs version="1"/>', 'a topology begins with <system>; this is a file of graphs, for NCCL_GRAPH_FILE'],
    ['<gpu/>', /a topology begins with <system>$/u],
    ['<system version="2"/>', 'version="2", expected 1'],
    [system(gpu), 'stands in <system>, belongs in <pci>'],
    [system(cpu('<cpu numaid="1"/>')), 'stands in <cpu>, belongs in <system>'],
    [system(cpu('<net name="a"/>')), 'stands in <cpu>, belongs in <nic>'],
    [system('<nic/>'), 'stands in <system>, belongs in <cpu> or <pci>'],
    [system(cpu(pci('0:1', '<c2c bw="1" count="1"/>'))), 'stands in <pci>, belongs in <gpu>'],
    [system(cpu('<pcilink target="0:1"/>')), 'stands in <cpu>, belongs in <pci>'],
    [system(cpu(pci('0:1', '<pcilink target="x"/>'))), 'target="x" is no PCI address'],
    [system(cpu(pci('0:1') + pci('00:1'))), 'busid="00:1" is there twice'],
    [system(cpu(pci('0:1', gpu) + pci('0:1'))), 'busid="0:1" is there twice'],
    [
      system(cpu('', ' host_hash="a"'), cpu('', ' host_hash="b"'), cpu('', ' host_hash="c"')),
      'host_hash="b", and "a" before: the file describes 3 hosts, a topology describes one',
    ],
  ])('%s is refused', (xml, reason) => {
    expect(() => check(xml)).toThrow(reason);
  });

  test.each([
    [system(cpu(pci('0:1', gpu) + pci('0:1', gpu)))],
    [system(cpu('', ' host_hash="a"'), cpu('', ' host_hash="a"'), cpu(''))],
    [system(cpu(pci('0:1', '<pcilink target="0:2"/>')))],
    [system(cpu('<unknown/>'))],
    ['<system/>'],
  ])('%s is accepted', (xml) => {
    expect(() => check(xml)).not.toThrow();
  });
});

const graph = (pattern: Graph['pattern'], nets: readonly [number, number] | null): Graph => ({
  pattern,
  channels: [{ order: [0, 1], nets }],
  inside: 1000,
  between: 800,
  typeInside: 'SYS',
  typeBetween: 'SYS',
  sameChannels: true,
  crossNic: 0,
  latencyBetween: 0,
});

describe('what a plan puts on links', () => {
  test.each([
    ['ppc64', 70],
    ['x86_64', 70],
    ['x86_64', 80],
  ])('each flow has its load on %s with compute capability %i', async (architecture, sm) => {
    const routes = new MachineRoutes(buildMachine(readXml(powerTopology(architecture, sm), 'p.xml').root));
    const text = (['ring', 'balancedTree', 'splitTree', 'tree', 'collnetDirect'] as const).flatMap((pattern) =>
      ([null, [0, 1]] as const).map((nets) => {
        const loads = linkLoads(routes, graph(pattern, nets));
        const parts = loads.map(
          ({ link, load }) => `${link.from.name}>${link.to.name} ${link.kind} ${Number(load.toFixed(3))}`,
        );
        return `${pattern} ${nets === null ? 'in' : 'out'}: ${parts.toSorted().join(', ')}`;
      }),
    );
    await expect(`${text.join('\n')}\n`).toMatchFileSnapshot(`fixtures/recorded/loads-${architecture}-${sm}.txt`);
  });
});

describe('graphs in the form of NCCL', () => {
  const parted = powerTopology('x86_64', 80)
    .replaceAll('dev="2"', 'dev="10"')
    .replace('rank="0"', 'rank="0" mlopart="0"')
    .replace('rank="1"', 'rank="1" mlopart="1"')
    .replace('<gpu dev="1"', '<gpu dev="0"');
  const machine = buildMachine(readXml(parted, 'p.xml').root);
  const ring: Graph = {
    pattern: 'ring',
    channels: [
      { order: [0, 1], nets: [0, 1] },
      { order: [1, 0], nets: [1, 1] },
    ],
    inside: 1234.5678,
    between: 12_000,
    typeInside: 'SYS',
    typeBetween: 'PHB',
    sameChannels: false,
    crossNic: 1,
    latencyBetween: 1.5,
  };
  const graphs = {
    ring,
    tree: { ...ring, pattern: 'splitTree', sameChannels: true, crossNic: 2 },
    collnetChain: { ...ring, pattern: 'tree', channels: [{ order: [1, 0], nets: null }] },
    collnetDirect: null,
  } as const;

  test('graphs are written with numbers of patterns, devices and parts', async () => {
    await expect(writeXml(graphsXml(machine, graphs))).toMatchFileSnapshot('fixtures/recorded/graphs.xml');
  });

  test('written graphs are read again', () => {
    const read = readGraphs(graphsXml(machine, { ...graphs, collnetChain: null }), machine, true);
    expect(read).toEqual({
      ...graphs,
      ring: { ...ring, inside: 1235 },
      tree: { ...graphs.tree, inside: 1235 },
      collnetChain: null,
    });
    expect(
      readGraphs(graphsXml(machine, { ...graphs, ring: null, tree: null }), machine, false).collnetChain?.channels,
    ).toEqual([{ order: [1, 0], nets: null }]);
  });

  test('a graph without crossnic and samechannels has channels of different hosts on the same NICs', () => {
    const written = graphsXml(machine, { ...graphs, tree: null, collnetChain: null });
    const bare = written.children.map((child) =>
      child.kind === 'element'
        ? {
            ...child,
            attributes: new Map([...child.attributes].filter(([name]) => !/crossnic|samechannels/u.test(name))),
          }
        : child,
    );
    expect(readGraphs({ ...written, children: bare }, machine, true).ring).toMatchObject({
      crossNic: 0,
      sameChannels: false,
    });
  });
});
