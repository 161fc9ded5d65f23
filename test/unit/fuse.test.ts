/** What a topology file says and what is detected, as one machine. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { checkTopology } from '../../control/topology/check.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { everyElement } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { fuse } from '../../control/topology/fuse.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { dumpTopology, hostTopologySystem, readTopologyFile } from '../../worker/topology/file.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const read = (xml: string): Element => readXml(xml, 'machine.xml').root;
const fused = (file: string, detected: string): string => writeXml(fuse(read(file), read(detected)));
const lines = (xml: string): string[] => xml.split('\n').map((line) => line.trim());

const detected = `<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="4" gdr="1">
        <nvlink target="0000:05:00.0" count="18" tclass="0x068000"/>
      </gpu>
    </pci>
    <nic>
      <net name="eth0" dev="1" latency="0" speed="10000" port="0" guid="0x1" maxconn="65536" gdr="0"/>
    </nic>
    <pci busid="0000:2a:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="8">
      <pci busid="0000:2b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0x2" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
`;

describe('a topology file', () => {
  test('an empty file leaves the detected topology unchanged', () => {
    expect(fused('<system version="1"/>', detected)).toBe(detected);
  });

  const machines = join(import.meta.dirname, 'fixtures');
  test.each(readdirSync(machines).filter((name) => name.endsWith('.xml')))(
    'a complete file, %s, stays unchanged',
    (name) => {
      const file = readFileSync(join(machines, name), 'utf8');
      expect(fused(file, file)).toBe(file);
    },
  );

  test('the file determines positions and attributes, and detection adds the rest', () => {
    const file = `<system version="1">
      <!-- of a virtual machine -->
      <cpu numaid="3" affinity="ff">
        <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16" color="red">
          <pci busid="0000:1B:00.0" link_speed="16 GT/s"><gpu rank="0"><nvlink target="0000:05:00.0" count="12"/></gpu></pci>
          <pci busid="0000:2b:00.0"/>
        </pci>
      </cpu>
    </system>`;
    expect(lines(fused(file, detected))).toEqual(
      lines(`<system version="1">
  <!-- of a virtual machine -->
  <cpu numaid="3" affinity="ff" host_hash="0x1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16" color="red">
      <pci busid="0000:1B:00.0" link_speed="16 GT/s" class="0x030200" vendor="0x10de" link_width="16">
        <gpu rank="4" dev="0" sm="90" gdr="1">
          <nvlink target="0000:05:00.0" count="12" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:2b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0x2" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="1" latency="0" speed="10000" port="0" guid="0x1" maxconn="65536" gdr="0"/>
    </nic>
  </cpu>
</system>
`),
    );
  });

  test('detected devices that the file lacks appear at their detected positions', () => {
    const file = `<system version="1"><cpu numaid="0"><pci busid="0000:2a:00.0" link_width="4"/></cpu></system>`;
    expect(lines(fused(file, detected)).filter((line) => line.startsWith('<pci'))).toEqual([
      '<pci busid="0000:2a:00.0" link_width="4" class="0x060400" link_speed="32.0 GT/s PCIe">',
      '<pci busid="0000:2b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">',
      '<pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="16">',
    ]);
  });

  test('an unused GPU keeps no rank, and a missing net keeps no device', () => {
    const file = `<system version="1"><cpu numaid="0">
      <pci busid="0000:3b:00.0" class="0x030200"><gpu dev="7" sm="80" rank="3"/></pci>
      <nic><net name="mlx5_9" dev="0" speed="100000"/><net name="eth0" dev="5" speed="25000" guid="0x9"/></nic>
    </cpu></system>`;
    const all = Array.from(everyElement(fuse(read(file), read(detected))), (one) => Object.fromEntries(one.attributes));
    expect(all).toContainEqual({ dev: '7', sm: '80' });
    expect(all).toContainEqual({ name: 'mlx5_9', speed: '100000' });
    expect(all).toContainEqual(expect.objectContaining({ name: 'eth0', dev: '1', speed: '25000', guid: '0x9' }));
  });

  test('fuse changes neither of its arguments', () => {
    const [file, found] = [read('<system version="1"><cpu numaid="0"/></system>'), read(detected)];
    fuse(file, found);
    expect(writeXml(file)).toBe(writeXml(read('<system version="1"><cpu numaid="0"/></system>')));
    expect(writeXml(found)).toBe(detected);
  });
});

test('an unknown link width may be empty', () => {
  const system = read(
    '<system><cpu numaid="0" arch="arm64"><pci busid="1:0.0" link_speed="" link_width=""/></cpu></system>',
  );
  expect(() => checkTopology(system)).not.toThrow();
  expect(buildMachine(system).cpus).toHaveLength(1);
});

describe('invalid topologies', () => {
  test.each<[string, string]>([
    ['<graphs version="1"/>', '1:1: <graphs>: a topology begins with <system>'],
    ['<system version="2"/>', '1:1: <system>: version="2", expected 1'],
    ['<system><cpu/></system>', '1:9: <cpu>: the attribute numaid is missing'],
    ['<system>\n  <pci busid="1"/></system>', '2:3: <pci>: stands in <system>, belongs in <cpu> or <pci>'],
    ['<system><cpu numaid="x"/></system>', '1:9: <cpu>: numaid="x", expected a whole number'],
    [
      `<system><cpu numaid="0"><pci busid="?"/></cpu></system>`,
      '1:25: <pci>: busid="?" is no PCI address, such as 0000:1b:00.0',
    ],
    [`<system><cpu numaid="0"><nic><net/></nic></cpu></system>`, '1:30: <net>: the attribute name is missing'],
    [
      `<system><cpu numaid="0"><nic><net name="a" latency="fast"/></nic></cpu></system>`,
      '1:30: <net>: latency="fast", expected a number',
    ],
    ['<system version="1"', '1:20: Unclosed start tag for element `system`'],
    ['<!DOCTYPE a>\n<system/>', '1:1: a document type is not read here: take <!DOCTYPE …> out'],
  ])('checkTopology rejects %s with its position', (xml, message) => {
    expect(() => checkTopology(read(xml))).toThrow(`machine.xml:${message}`);
  });
});

const missing = () => 'no library';

describe('reading and writing files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-topology-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const probes = { nvmlGpus: missing, cudaGpus: missing, verbsPorts: missing };

  test('the failure of an unreadable or unwritable file names the path', () => {
    const path = join(directory, 'none/machine.xml');
    expect(() => readTopologyFile(path)).toThrow(`${path}: no such file or directory`);
    expect(() => readTopologyFile(directory)).toThrow(`${directory}: illegal operation on a directory`);
    expect(() => dumpTopology(path, read(detected))).toThrow(`${path}: no such file or directory`);
    expect(() => readTopologyFile(import.meta.filename)).toThrow(/fuse\.test\.ts:1:1: /u);
  });

  test('a topology file is combined with the detected topology', async () => {
    const path = join(directory, 'machine.xml');
    writeFileSync(path, '<system version="1"><cpu numaid="4" arch="ppc64"/></system>');
    using sysfs = new FakeSysfs();
    const { system } = await hostTopologySystem(probes, readTopologyFile(path), { root: sysfs.root, environment: {} });
    const cpus = Array.from(everyElement(system)).filter(({ name }) => name === 'cpu');
    expect(cpus.map(({ attributes }) => [attributes.get('numaid'), attributes.get('arch')])).toEqual([['4', 'ppc64']]);
  });

  test("NVIDIA's virtualTopology.xml is read unless another file is named", async () => {
    using sysfs = new FakeSysfs();
    sysfs.write('var/run/nvidia-topologyd/virtualTopology.xml', '<system version="1"><cpu numaid="5"/></system>');
    const options = { root: sysfs.root, environment: {} };
    expect(writeXml((await hostTopologySystem(probes, null, options)).system)).toContain('<cpu numaid="5"');
    expect(writeXml((await hostTopologySystem(probes, read(detected), options)).system)).not.toContain(
      '<cpu numaid="5"',
    );
    sysfs.write('var/run/nvidia-topologyd/virtualTopology.xml', '<system');
    await expect(hostTopologySystem(probes, null, options)).rejects.toThrow('virtualTopology.xml:2:1: ');
  });
});
