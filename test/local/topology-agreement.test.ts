/** `ncclrun topo`, `ncclrun plan` and jobs read a topology file alike. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { TWO_HOSTS } from '../rig/shared-address.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-agreement-'));
afterAll(() => rmSync(directory, { recursive: true }));
const file = join(directory, 'machine.xml');

/** What each of the three says of a file, without the variable that a job names before. */
async function sayings(content: string): Promise<string[]> {
  writeFileSync(file, content);
  const job = ['-n', '1', '--wdir', directory, '-x', `NCCL_TOPO_FILE=${file}`, '-x', 'NCCLRUN_DEVICE=host', 'true'];
  const runs = await Promise.all(
    [['topo', '--from', file], ['plan', '--topo', file], job].map((argv) => Command.run(argv)),
  );
  return runs.map(({ status, stderr }) => {
    const at = stderr.indexOf(`${file}:`);
    return at === -1 ? `${status}: ${stderr}` : (stderr.slice(at + file.length).split(/ \(\w+\)$|\n/mu)[0] ?? '');
  });
}

const cpu = '<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">';
const device = (attributes: string, gpu = ''): string =>
  `<system version="1">${cpu}\n  <pci busid="0000:01:00.0" class="0x030200" ${attributes}><gpu dev="0" sm="80" rank="0">${gpu}</gpu></pci></cpu></system>`;

it.each<[string, string, string]>([
  ['of another version', '<system version="2"/>', ':1:1: <system>: version="2", expected 1'],
  [
    'of graphs',
    '<graphs version="1"/>',
    ':1:1: <graphs>: a topology begins with <system>; this is a file of graphs, for NCCL_GRAPH_FILE',
  ],
  ['with words for lanes', device('link_width="x16"'), ':2:3: <pci>: link_width="x16", expected a whole number'],
  [
    'with negative lanes',
    device('link_width="-1"'),
    ':2:3: <pci>: link_width="-1", expected a number of lanes from 0 to 32; unknown is 0, 63 or 255',
  ],
  ['with an invalid speed', device('link_speed="fast"'), ':2:3: <pci>: link_speed="fast" is no speed of a PCI link'],
  [
    'with negative NVLinks',
    device('', '\n<nvlink target="0000:02:00.0" count="-4" tclass="0x030200"/>'),
    ':3:1: <nvlink>: count="-4", expected a whole number from 1 to 1024',
  ],
  [
    'with a number in exponent form',
    device('', '\n<nvlink target="0000:02:00.0" count="1e12" tclass="0x030200"/>'),
    ':3:1: <nvlink>: count="1e12", expected a whole number',
  ],
  [
    'with a truncated number',
    '<system><cpu numaid="0x"/></system>',
    ':1:9: <cpu>: numaid="0x", expected a whole number',
  ],
  ['with a duplicate address', device('').replace('</cpu>', '<pci busid="0000:01:00.0"/></cpu>'), ': is there twice'],
  ['of two hosts', TWO_HOSTS, ':5:3: <cpu>: host_hash="0xaa02", and "0xaa01" before: the file describes 2 hosts'],
])('topo, plan and a job reject a file %s with the same message', async (_, content, output) => {
  const [topo = '', plan, job] = await sayings(content);
  expect({ plan, job }).toEqual({ plan: topo, job: topo });
  for (const part of output.split(' is there ')) expect(topo).toContain(part.trim());
});

it.each(['255', '63', '0', ''])('topo, plan and a job accept a link of "%s" lanes', async (width) => {
  for (const said of await sayings(device(`link_speed="Unknown" link_width="${width}"`))) expect(said).toBe('0: ');
});
