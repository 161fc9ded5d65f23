/** Files that describe more than a host can have, and the largest that one may have: both end soon. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planFromJson } from '../../control/plan/json.ts';
import { readPlanFile } from '../../control/plan/file.ts';
import { shapeOf } from '../../control/planner/cluster/host-shape.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { readFileUpTo, TooLargeError } from '../../control/read-file.ts';
import { checkTopology } from '../../control/topology/check.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { survey } from '../../launcher/topology/survey.ts';
import { textOf } from '../../launcher/topology/text.ts';
import { readTopologyFile as readOnHost } from '../../worker/topology/file.ts';

/** Four GPUs to a processor, each with a NIC beside it behind a switch. `links`: what a GPU has inside. */
function topology(gpus: number, links: (gpu: number) => string = () => toSwitch): string {
  const cpus = Array.from({ length: Math.ceil(gpus / 4) }, (_, cpu) => {
    const first = 4 * cpu;
    const here = Array.from({ length: Math.min(4, gpus - first) }, (_unused, at) => device(first + at, links));
    return `<cpu numaid="${cpu}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">${here.join('')}</cpu>`;
  });
  return `<system version="1">${cpus.join('\n')}</system>`;
}

const toSwitch = '<nvlink target="0000:fe:00.0" count="18" tclass="0x068000"/>';
const link = 'link_speed="32.0 GT/s PCIe" link_width="16"';

function device(gpu: number, links: (gpu: number) => string): string {
  const nic = `<nic><net name="mlx5_${gpu}" dev="${gpu}" speed="400000" port="1" guid="0x${gpu}" gdr="1"/></nic>`;
  return `<pci busid="${address(2, gpu)}" class="0x060400" ${link}>
    <pci busid="${address(1, gpu)}" class="0x030200" ${link}><gpu dev="${gpu}" sm="90" rank="${gpu}" gdr="1">${links(gpu)}</gpu></pci>
    <pci busid="${address(3, gpu)}" class="0x020000" ${link}>${nic}</pci></pci>`;
}

function address(kind: number, index: number): string {
  const bus = (index & 0xff).toString(16).padStart(2, '0');
  return `${kind}${(index >> 8).toString(16).padStart(3, '0')}:${bus}:00.0`;
}

function read(text: string) {
  return readXml(text, 'machine.xml').root;
}

describe('topologies beyond the limits', () => {
  it.each([
    [
      '3,000 GPUs',
      topology(3000),
      /^machine\.xml:1:1: <system>: has 3000 GPUs, and the maximum is 576; a topology describes one host/,
    ],
    ['577 GPUs', topology(577), /has 577 GPUs/],
    ['a GPU’s NVLinks', topology(1, () => toSwitch.repeat(129)), /<gpu>: has 129 NVLinks, and the maximum is 128/],
    [
      'network devices',
      topology(1).replace('</nic>', '<net name="x"/>'.repeat(576) + '</nic>'),
      /has 577 network devices/,
    ],
    ['processors', `<system>${'<cpu numaid="0"/>'.repeat(600)}</system>`, /has 600 processors/],
    [
      'PCI devices',
      `<system><cpu numaid="0" arch="arm64">${'<pci busid="1"/>'.repeat(5000)}</cpu></system>`,
      /has 5000 PCI devices/,
    ],
  ])('every reader of topologies rejects too many devices: %s', (_what, text, sentence) => {
    const system = read(text);
    expect(() => checkTopology(system)).toThrow(sentence);
    expect(() => buildMachine(system)).toThrow(sentence);
    expect(() => survey(system, 'x')).toThrow(sentence);
  });

  it.each([
    ['elements', `<a>${'<b/>'.repeat(300_000)}</a>`, 'machine.xml: has more than 300000 tags, which no topology has'],
    ['levels', '<a>'.repeat(200_000), 'machine.xml: elements are nested without end'],
    ['characters', ' '.repeat(17 << 20), /17825792 characters are more than any topology has/],
    ['entities', '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a/>', /a document type is not read here/],
  ])('the XML reader rejects too many %s', (_what, text, sentence) => {
    expect(() => read(text)).toThrow(sentence);
  });

  it('the XML reader quotes the beginning of a text that no topology has', () => {
    expect(() => read(`<system>\n  ${'abcdefghij'.repeat(5)}</system>`)).toThrow(
      /^machine\.xml:\d+:\d+: text inside <system>: "abcdefghijabcdefghijabcdefghijabcdefghij"$/,
    );
  });

  it('a file of the maximum size is read, and one with a byte more is not', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'ncclrun-limits-')), 'file');
    for (const bytes of [0, 1, 65_536, 70_000]) {
      writeFileSync(path, Buffer.alloc(bytes, 'x'));
      expect(readFileUpTo(path, bytes)).toHaveLength(bytes);
      if (bytes > 0) expect(() => readFileUpTo(path, bytes - 1)).toThrow(TooLargeError);
    }
    rmSync(dirname(path), { recursive: true });
  });

  it('the readers of topologies and plans give up endless files', () => {
    expect(() => readOnHost('/dev/zero')).toThrow('/dev/zero: it has more than 17 MiB');
    expect(() => readPlanFile('/dev/zero')).toThrow('/dev/zero: cannot be read: it has more than 256 MiB');
    expect(() => planFromJson('['.repeat(1e6), 'x')).toThrow(/^x/);
  });
});

describe('the largest hosts', () => {
  it('a host of 576 GPUs and NICs is shown', { timeout: 120_000 }, () => {
    const machine = survey(read(topology(576)), 'x');
    const text = textOf(machine, (_format, words) => words);
    expect(text).toContain('576 GPUs (sm 90), 576 NICs (400 Gb/s), NVSwitch');
    expect(text).toContain('GPU 575');
  });

  it.each([
    ['behind switches', topology(288)],
    [
      'all connected to all',
      topology(129, (own) => {
        const others = Array.from({ length: 129 }, (_, gpu) => gpu).filter((gpu) => gpu !== own);
        return others.map((gpu) => `<nvlink target="${address(1, gpu)}" count="1" tclass="0x030200"/>`).join('');
      }),
    ],
  ])('a host of hundreds of GPUs %s gets channels', { timeout: 120_000 }, (_how, text) => {
    const machine = buildMachine(read(text));
    const { ring, tree } = shapeOf(new MachineRoutes(machine), true);
    expect(ring.channels.length).toBeGreaterThan(0);
    for (const { order } of [...ring.channels, ...tree.channels]) expect(new Set(order).size).toBe(machine.gpus.length);
  });
});
