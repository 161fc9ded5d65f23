/** A machine as text, as JSON and as a picture. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { jsonOf } from '../../launcher/topology/json.ts';
import { survey } from '../../launcher/topology/survey.ts';
import { svgOf } from '../../launcher/topology/svg/svg.ts';
import { textWidth } from '../../launcher/topology/svg/text-width.ts';
import { textOf } from '../../launcher/topology/text.ts';
import { seededRandom } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';
import { overlap, rectangle, shapesOf } from '../rig/svg.ts';
import type { Shape } from '../rig/svg.ts';
import { describeMachines, machineNames, machinePath } from '../rig/topologies.ts';

const plain = (_format: string, text: string): string => text;
const textFor = (system: Element): string => textOf(survey(system, 'machine'), plain);
const svgFor = (system: Element): string => svgOf(survey(system, 'machine'));

function fixture(name: string): Element {
  return readXml(readFileSync(join(import.meta.dirname, 'fixtures', `${name}.xml`), 'utf8'), `${name}.xml`).root;
}

interface Link {
  readonly to: number;
  readonly count: number;
}

const address = (gpu: number): string => `0000:${gpu + 10}:00.0`;

/** GPUs under one processor with NVLinks between them. */
function mesh(...links: readonly (readonly Link[])[]): Element {
  const gpus = links.map((own, dev) => {
    const nvlinks = own.map(({ to, count }) => element('nvlink', { target: address(to), count, tclass: '0x030200' }));
    const gpu = element('gpu', { dev, sm: 70, gdr: 1 }, nvlinks);
    const pci = { busid: address(dev), class: '0x030200', link_speed: '8.0 GT/s PCIe', link_width: 16 };
    return element('pci', pci, [gpu]);
  });
  return element('system', { version: 1 }, [element('cpu', { numaid: -1, arch: 'arm64' }, gpus)]);
}

const square = mesh(
  [
    { to: 1, count: 2 },
    { to: 2, count: 1 },
  ],
  [
    { to: 0, count: 2 },
    { to: 3, count: 1 },
  ],
  [
    { to: 0, count: 1 },
    { to: 3, count: 2 },
  ],
  [
    { to: 1, count: 1 },
    { to: 2, count: 2 },
  ],
);

describe('a topology as text', () => {
  test('the text shows the NVLinks of a mesh', () => {
    expect(textFor(square).split('\n')).toEqual([
      'machine: 1 CPU, 4 GPUs (sm 70), no NIC',
      '',
      '                               link         GB/s',
      'CPU  arm64',
      '├─ GPU 0  0000:10:00.0  sm 70  PCIe 3 x16     12',
      '│    to GPU 1                  NVLink x2      40',
      '│    to GPU 2                  NVLink x1      20',
      '├─ GPU 1  0000:11:00.0  sm 70  PCIe 3 x16     12',
      '│    to GPU 0                  NVLink x2      40',
      '│    to GPU 3                  NVLink x1      20',
      '├─ GPU 2  0000:12:00.0  sm 70  PCIe 3 x16     12',
      '│    to GPU 3                  NVLink x2      40',
      '│    to GPU 0                  NVLink x1      20',
      '└─ GPU 3  0000:13:00.0  sm 70  PCIe 3 x16     12',
      '     to GPU 2                  NVLink x2      40',
      '     to GPU 1                  NVLink x1      20',
      '',
      'Paths between GPUs, GB/s',
      '       GPU 0   GPU 1   GPU 2   GPU 3',
      'GPU 0  X       NVL 40  NVL 20  NVB 20',
      'GPU 1  NVL 40  X       NVB 20  NVL 20',
      'GPU 2  NVL 20  NVB 20  X       NVL 40',
      'GPU 3  NVB 20  NVL 20  NVL 40  X',
      '',
      'NVL  NVLinks',
      'NVB  NVLinks, through another GPU',
      '',
    ]);
  });

  test('the text shows switches, an unused GPU and a NIC with two ports', () => {
    const text = textFor(fixture('switches'));
    expect(text).toContain('machine: 2 NUMA nodes, 4 GPUs (sm 90), 4 NICs (400 Gb/s, 100 Gb/s), NVSwitch\n');
    expect(text).toContain('│    to 4 NVSwitches                         NVLink x18    371\n');
    expect(text).toContain('   ├─ GPU 2  0000:3a:00.0  sm 90                PCIe 5 x16     48\n');
    expect(text).toContain('├─ NIC 2  0000:99:00.0  mlx5_2, 100 Gb/s        PCIe 4 x8      12\n│  NIC 3 ');
    expect(text).toContain('\nNIC 2-3  SYS 12  SYS 12  SYS 12  PHB 12\n');
  });

  test.each([
    [1, 'to NVSwitch '],
    [2, 'to 2 NVSwitches '],
  ])('the text counts the NVSwitches of a GPU where there are several: %i', (switches, words) => {
    const links = Array.from({ length: switches }, (_, at) =>
      element('nvlink', { target: `0000:f${at}:00.0`, count: 9, tclass: '0x068000' }),
    );
    const gpu = element('gpu', { dev: 0, sm: 90, rank: 0, gdr: 1 }, links);
    const pci = { busid: '0000:01:00.0', class: '0x030200', link_speed: '8 GT/s', link_width: 16 };
    const system = element('system', {}, [element('cpu', { numaid: 0, arch: 'arm64' }, [element('pci', pci, [gpu])])]);
    expect(textFor(system)).toContain(words);
  });

  test('the text highlights slow paths', () => {
    const marked = textOf(survey(fixture('superchips'), 'machine'), (format, text) => `<${format} ${text}>`);
    expect(marked).toContain('P2C 3.13  <yellow SYS 3.13>');
  });

  test('the text mentions GPUs and NICs that the file does not describe', () => {
    const device = { link_speed: '8 GT/s', link_width: 16 };
    const system = element('system', {}, [
      element('cpu', { numaid: 0, arch: 'arm64' }, [
        element('pci', { busid: '0000:01:00.0', class: '0x030200', ...device }),
        element('pci', { busid: '0000:02:00.0', class: '0x020000', ...device }),
        element('pci', { busid: '0000:03:00.0', class: '0x020000', ...device }),
      ]),
    ]);
    expect(textFor(system)).toContain('machine: 1 NUMA node, 1 GPU not described, 2 NICs not described\n');
    expect(textFor(system)).toContain('├─ GPU 0000:01:00.0  PCIe 3 x16     12\n');
  });

  test('the matrix of 72 GPUs fits the width of the page', () => {
    const many = mesh(...Array.from({ length: 72 }, () => []));
    const lines = textFor(many).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines.filter((line) => line.startsWith('GPU 71'))).toHaveLength(8);
  });
});

describe('a topology as JSON', () => {
  test('the JSON contains the tree, every device and every path', () => {
    const document: unknown = JSON.parse(jsonOf(survey(fixture('superchips'), 'machine', ['a note'])));
    const arrays = { gpus: expect.any(Array), nets: expect.any(Array), paths: expect.any(Array) };
    expect(document).toMatchObject({ schemaVersion: 1, source: 'machine', notes: ['a note'], ...arrays });
    expect(document).toMatchObject({
      system: { name: 'system', attributes: { version: '1' }, children: [{ name: 'cpu' }, {}, {}] },
      cpus: [{ numa: 0, arch: 'arm64', vendor: null, affinity: 'ffffffff', socketBandwidth: 6 }, {}, {}],
      gpus: [
        {
          index: 0,
          busId: '0009:01:00.0',
          rank: 0,
          numa: 0,
          computeCapability: 90,
          gpuDirect: false,
          pci: { generation: 5, width: null, bandwidth: 48 },
          nvlinks: [{ to: 'gpu', gpu: 1, busId: '0019:01:00.0', count: 6, bandwidth: 123.6 }],
          c2cBandwidth: 447.12,
        },
        { index: 1 },
      ],
      nets: [{ index: 0, name: 'eth0', busId: null, megabitsPerSecond: 25_000, bandwidth: 3.125, pci: null }, {}],
    });
    expect(document).toHaveProperty('paths.length', 2 + 2 * 2 * 2);
    expect(document).toHaveProperty('paths.0', {
      from: { kind: 'gpu', index: 0 },
      to: { kind: 'gpu', index: 1 },
      type: 'NVL',
      bandwidth: 123.6,
      through: [],
    });
  });

  test('an unused GPU has the rank null', () => {
    const document: unknown = JSON.parse(jsonOf(survey(fixture('switches'), 'machine')));
    expect(document).toMatchObject({ gpus: [{ rank: 4 }, { rank: 5 }, { rank: null }, { rank: 6 }] });
  });
});

/** Lines that do not fit a terminal, but for what lies deeper than eight switches, as nothing does that is real. */
function tooLong(text: string): string[] {
  return text.split('\n').filter((line) => line.length > 80 && (/^[│├└─ ]*/u.exec(line)?.[0].length ?? 0) <= 24);
}

const boxes = new Set(['cpu', 'switch', 'gpu', 'nic', 'device', 'fabric']);

/** No box over another, no text that is cut or leaves the page, nothing to fetch. */
function expectReadable(svg: string): Shape[] {
  const shapes = shapesOf(svg);
  const [root] = shapes;
  const rects = shapes.filter(({ name }) => name === 'rect');
  const solid = rects.filter(({ group, attributes }) => boxes.has(group) && attributes['class'] === undefined);
  const plates = rects.filter(({ attributes }) => attributes['class'] === 'inside');
  const covered = [...solid, ...plates].flatMap((one, index, all) =>
    all.slice(index + 1).filter((other) => overlap(rectangle(one), rectangle(other))),
  );
  expect(covered).toEqual([]);

  const page = rectangle({ name: '', attributes: root?.attributes ?? {}, group: '', text: '' });
  for (const { attributes, text } of shapes.filter(({ name }) => name === 'text')) {
    const [x = 0, y = 0, size = 0] = ['x', 'y', 'font-size'].map((key) => Number(attributes[key]));
    const width = textWidth(text, size, attributes['font-weight'] !== undefined);
    const left = attributes['text-anchor'] === 'middle' ? x - width / 2 : x;
    const own = { x: left, y: y - size * 0.8, width, height: size };
    expect(left >= 0 && left + width <= page.width && y <= page.height, text).toBe(true);
    const cut = solid.filter((box) => {
      const around = rectangle(box);
      const inside = around.x <= left + 0.2 && left + width <= around.x + around.width + 0.2;
      return overlap(own, around) && !inside;
    });
    expect(cut, text).toEqual([]);
  }
  expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', '')).not.toMatch(/https?:|href|url\(|@import|<script/u);
  return shapes;
}

describe('a topology as a picture', () => {
  test('the picture of a mesh has an arc per pair of GPUs with a width by links', () => {
    const shapes = expectReadable(svgFor(square));
    const arcs = shapes.filter(({ attributes }) => attributes['class'] === 'nvlink' && attributes['d']?.includes('C'));
    expect(arcs.map(({ attributes }) => attributes['stroke-width'] ?? '').toSorted()).toEqual([
      '1.7',
      '1.7',
      '3.4',
      '3.4',
    ]);
    const hints = shapes.filter(({ name, group }) => name === 'title' && group === 'link').map(({ text }) => text);
    expect(hints.toSorted()).toEqual([
      'GPU 0 to GPU 1: 2 NVLinks, 40 GB/s each way',
      'GPU 0 to GPU 2: 1 NVLink, 20 GB/s each way',
      'GPU 1 to GPU 3: 1 NVLink, 20 GB/s each way',
      'GPU 2 to GPU 3: 2 NVLinks, 40 GB/s each way',
    ]);
    const labels = shapes.filter(({ name, text }) => name === 'text' && text.startsWith('×')).map(({ text }) => text);
    expect(labels.toSorted()).toEqual(['×1', '×1', '×2', '×2']);
  });

  test('the picture has a bar for the NVSwitches and a label for everything', () => {
    const shapes = expectReadable(svgFor(fixture('switches')));
    const texts = shapes.filter(({ name }) => name === 'text').map(({ text }) => text);
    for (const name of ['NUMA node 0', 'GPU 0', 'GPU 3', 'mlx5_0', 'mlx5_3, 100 Gb/s', '4 NVSwitches', '22 GB/s'])
      expect(texts).toContain(name);
    expect(texts.filter((text) => text === '×18')).toHaveLength(4);
  });

  test('the picture has a title and a description for screen readers', () => {
    const shapes = shapesOf(svgFor(fixture('superchips')));
    const labelled = shapes[0]?.attributes['aria-labelledby']?.split(' ') ?? [];
    const named = labelled.map((id) => shapes.find(({ attributes }) => attributes['id'] === id)?.text);
    expect(named).toEqual(['Topology of machine', expect.stringContaining('NUMA node 0: GPU 0, eth0, eth1.')]);
  });

  test('the picture shows special characters in NIC names as text', () => {
    const net = element('net', { name: '<script>"&', dev: 0, speed: 1000, port: 0 });
    const system = element('system', {}, [element('cpu', { numaid: 0, arch: 'arm64' }, [element('nic', {}, [net])])]);
    expect(expectReadable(svgFor(system)).map(({ text }) => text)).toContain('<script>"&');
  });

  test('pictures of random machines are readable', () => {
    for (let seed = 0; seed < 150; seed++) {
      const system = randomTopology(seededRandom(seed));
      expectReadable(svgFor(system));
      expect(tooLong(textFor(system))).toEqual([]);
    }
  });
});

describeMachines('pictures of known machines', () => {
  test.each(machineNames())('the picture of %s is readable', (name) => {
    const text = readFileSync(machinePath(name), 'utf8');
    const { root, comments } = readXml(text, name);
    expect(writeXml(root, comments)).toBe(text);
    expectReadable(svgFor(root));
    expect(tooLong(textFor(root))).toEqual([]);
  });
});
