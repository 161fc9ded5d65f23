/** `ncclrun topo` as a user types it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { shapesOf } from '../rig/svg.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-topo-'));
afterAll(() => rmSync(directory, { recursive: true }));
const file = join(repository, 'test/unit/fixtures/switches.xml');

async function prints(...argv: string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['topo', ...argv]);
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

describe('a topology file', () => {
  it('ncclrun topo prints a file as text', async () => {
    expect(await prints('--from', file)).toContain(
      '│  ├─ GPU 0  0000:18:00.0  sm 90                PCIe 5 x16     48\n',
    );
  });

  it('ncclrun topo uses colours only with FORCE_COLOR in a pipe', async () => {
    expect(await prints('--from', file)).not.toContain('\u{1b}');
    const { stdout } = await Command.run(['topo', '--from', file], { environment: { FORCE_COLOR: '1' } });
    expect(stdout).toContain('\u{1b}[1mGPU 0\u{1b}[22m');
  });

  it('--format xml reproduces the file byte by byte', async () => {
    expect(await prints('--from', file, '--format', 'xml')).toBe(await readFile(file, 'utf8'));
  });

  it('--json prints the topology as JSON', async () => {
    const json = await prints('--from', file, '--json');
    expect(JSON.parse(json)).toMatchObject({ schemaVersion: 1, source: 'switches.xml', gpus: [{}, {}, {}, {}] });
    expect(await prints('--from', file, '--format', 'json')).toBe(json);
  });

  it('--format svg draws a picture', async () => {
    expect(shapesOf(await prints('--from', file, '--format', 'svg'))[0]).toMatchObject({ name: 'svg' });
  });

  it('ncclrun topo reads standard input', async () => {
    await using command = Command.start(['topo', '--from', '-', '--format', 'xml'], { stdin: 'pipe' });
    const text = await readFile(file, 'utf8');
    command.process.stdin?.end(text);
    expect(await command.outcome).toMatchObject({ status: 0, stdout: text });
  });
});

describe('the topology of a host', () => {
  it('ncclrun topo shows this host by default', async () => {
    const found: unknown = JSON.parse(await prints('--json'));
    expect(found).toMatchObject({ schemaVersion: 1, system: { name: 'system' }, cpus: expect.any(Array) });
    expect(found).toHaveProperty('cpus.0.numa');
  });

  it('--host shows another host through the remote shell', async () => {
    const shell = join(directory, 'shell');
    writeFileSync(shell, '#!/bin/sh\necho "$1" >>"$0.called"\nshift\nexec sh -c "$*"\n', { mode: 0o755 });
    const here = await prints('--format', 'xml');
    const argv = ['--host', 'elsewhere', '--rsh', shell];
    expect(await prints(...argv, '--format', 'xml')).toBe(here);
    expect(await readFile(`${shell}.called`, 'utf8')).toMatch(/^(elsewhere\n)+$/u);
    expect(await prints(...argv)).toMatch(/^elsewhere: \d+ (NUMA node|CPU)/u);
  });

  it('ncclrun topo fails with 125 when the host is unreachable', async () => {
    const shell = join(directory, 'broken');
    writeFileSync(shell, '#!/bin/sh\necho "no way there" >&2\nexit 255\n', { mode: 0o755 });
    const { status, stdout, stderr } = await Command.run(['topo', '--host', 'elsewhere', '--rsh', shell]);
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toContain('cannot reach elsewhere');
  });
});

const cpu = '<cpu numaid="0" arch="arm64">';
const wrong: readonly (readonly [name: string, content: string, said: string])[] = [
  ['words', 'hello', ':1:1: '],
  ['nothing', '', ':1:1: '],
  ['root', '<graphs/>', ':1:1: <graphs>: a topology begins with <system>'],
  ['empty', '<system/>', ':1:1: <system>: there is no <cpu> in it'],
  ['cut', '<system>\n <cpu', ':2:6: '],
  ['doctype', '<!DOCTYPE a>\n<system/>', ':1:1: a document type is not read here'],
  ['numa', '<system>\n  <cpu numaid="x" arch="arm64"/></system>', ':2:3: <cpu>: numaid="x", expected a whole number'],
  ['address', `<system>${cpu}\n<pci busid="zz"/></cpu></system>`, ':2:1: <pci>: busid="zz" is no PCI address'],
  ['speed', `<system>${cpu}\n<pci busid="1:0" link_speed="fast"/></cpu></system>`, ':2:1: <pci>: link_speed="fast"'],
  ['width', `<system>${cpu}\n<pci busid="1:0" link_width="999"/></cpu></system>`, ':2:1: <pci>: link_width="999"'],
  ['class', `<system>${cpu}\n<pci busid="1:0" class="GPU"/></cpu></system>`, ':2:1: <pci>: class="GPU" is no class'],
  [
    'control',
    `<system>${cpu}\n<pci busid="&#10;&#9;"/></cpu></system>`,
    ':2:1: <pci>: busid="\\n\t" has a control character',
  ],
  [
    'deep',
    `<system>${'<cpu>'.repeat(150)}${'</cpu>'.repeat(150)}</system>`,
    ': elements are nested more than 100 deep',
  ],
];

async function refused(...argv: string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['topo', ...argv], { directory });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+/mu);
  expect(stderr.split('\n')).toEqual([expect.stringMatching(/^ncclrun: /u), expect.stringMatching(/^ {2}next: /u), '']);
  return stderr;
}

describe('invalid topology files', () => {
  it.each(wrong)('ncclrun topo rejects an invalid file with its position (%s)', async (name, content, output) => {
    writeFileSync(join(directory, `${name}.xml`), content);
    for (const format of ['text', 'xml']) {
      const told = await refused('--from', `${name}.xml`, '--format', format);
      expect(told).toContain(`ncclrun: ${name}.xml:`);
      expect(told).toContain(output);
    }
  });

  it('ncclrun topo rejects a missing file, a directory and an endless file', async () => {
    expect(await refused('--from', 'missing.xml')).toContain('there is no file missing.xml');
    expect(await refused('--from', '.')).toContain('. is a directory');
    expect(await refused('--from', '/dev/zero')).toContain('/dev/zero is no topology: it is too large');
  });
});

test('every command rejects a file with more GPUs than a host can have', async () => {
  const gpus = Array.from({ length: 3000 }, (_, gpu) => {
    return `<pci busid="${gpu.toString(16).padStart(4, '0')}:00:00.0" class="0x030200"><gpu dev="${gpu}" sm="90" rank="${gpu}"/></pci>`;
  });
  const path = join(directory, 'many.xml');
  const cpu = 'numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"';
  writeFileSync(path, `<system version="1"><cpu ${cpu}>${gpus.join('')}</cpu></system>`);
  const sentence = 'has 3000 GPUs, and the maximum is 576; a topology describes one host';
  expect(await refused('--from', path)).toContain(sentence);
  const plan = await Command.run(['plan', '--topo', path]);
  expect(plan.stderr).toContain(sentence);
  const job = await Command.run(['-n', '2', '/bin/true'], { environment: { NCCL_TOPO_FILE: path } });
  expect(job.stderr).toContain(sentence);
  expect([plan.status, job.status]).toEqual([2, 125]);
});

test('ncclrun topo rejects invalid arguments', async () => {
  expect(await refused('--from', file, '--host', 'node1')).toContain('--from and --host both name the machine');
  expect(await refused('--host', 'node1,node2')).toContain('one host at a time');
  expect(await refused('--format', 'pdf')).toContain('one of text, json, xml, svg is wanted');
  expect(await refused('somewhere')).toContain('"somewhere" after topo has no meaning');
});
