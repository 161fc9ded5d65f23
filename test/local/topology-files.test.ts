/** NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE on real jobs. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readXml } from '../../control/topology/read-xml.ts';
import { hostHash } from '../../worker/topology/host-hash.ts';
import { Command } from '../rig/command.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-topology-'));
});
afterAll(() => rm(directory, { recursive: true }));

const run = (environment: Readonly<Record<string, string>>, words: readonly string[] = []) =>
  Command.run([...words, '-n', '2', '--wdir', directory, 'echo', 'started'], { environment });

/** Jobs that end at once, one after the other. */
const shortJobs = async (series: number): Promise<void> => {
  for (let number = 0; number < 10; number++) {
    const name = join(directory, `short-${series}-${number}.xml`);
    const { status } = await Command.run(['-n', '2', 'true'], { environment: { NCCL_TOPO_DUMP_FILE: name } });
    expect(status).toBe(0);
    expect(existsSync(name)).toBe(true);
  }
};

describe('NCCL_TOPO_DUMP_FILE', () => {
  it('NCCL_TOPO_DUMP_FILE receives the topology of this host in one file', async () => {
    const { status, stdout } = await run({ NCCL_TOPO_DUMP_FILE: 'dump.xml', NCCL_SOCKET_IFNAME: 'lo' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/started\n.*started\n/u) });
    const { root } = readXml(await readFile(join(directory, 'dump.xml'), 'utf8'), 'dump.xml');
    expect(root.name).toBe('system');
    expect(await readdir(directory)).toEqual(['dump.xml']);
  });

  it('the dump contains the topology of a NCCL_TOPO_FILE given by -x', async () => {
    const file = join(directory, 'machine.xml');
    await writeFile(
      file,
      '<system version="1"><cpu numaid="0" arch="x86_64" vendor="Mine" familyid="6" modelid="1"/></system>',
    );
    const dump = join(directory, 'dump.xml');
    const { status } = await run({}, ['-x', `NCCL_TOPO_FILE=${file}`, '-x', `NCCL_TOPO_DUMP_FILE=${dump}`]);
    expect(status).toBe(0);
    expect(await readFile(dump, 'utf8')).toContain('vendor="Mine"');
  });

  it('the dump exists after a job that ends at once', async () => {
    await Promise.all([1, 2, 3, 4, 5, 6].map(shortJobs));
  });

  it('the launcher reports a dump that it cannot write, and the job runs', async () => {
    const { status, stderr } = await run({ NCCL_TOPO_DUMP_FILE: 'none/dump.xml' });
    expect(status).toBe(0);
    expect(stderr).toContain(
      `NCCL_TOPO_DUMP_FILE is not written: ${join(directory, 'none/dump.xml')}: no such file or directory`,
    );
  });
});

it('every host reads and writes its own topology files', async () => {
  // A host that is this machine, by an agent of its own.
  const shell = join(directory, 'shell');
  await writeFile(shell, '#!/bin/sh\nNCCL_HOSTID=$1; export NCCL_HOSTID; shift; exec sh -c "$*"\n', { mode: 0o755 });
  const dump = join(directory, 'there.xml');
  const words = ['--rsh', shell, '-H', 'there:2', '-x', `NCCL_TOPO_DUMP_FILE=${dump}`];
  const { status } = await run({}, words);
  expect(status).toBe(0);
  expect(await readFile(dump, 'utf8')).toContain(`host_hash="${hostHash('/', { NCCL_HOSTID: 'there' })}"`);
  const wrong = await run({}, ['--rsh', shell, '-H', 'there:2', '-x', `NCCL_TOPO_FILE=${shell}`]);
  expect({ status: wrong.status, stdout: wrong.stdout }).toEqual({ status: 125, stdout: '' });
  expect(wrong.stderr).toContain(`there: NCCL_TOPO_FILE: ${shell}:1:1: `);
});

describe('NCCL_TOPO_FILE', () => {
  it.each<[string, string, string]>([
    ['with broken XML', '<system version="1">\n  <cpu', 'bad.xml:2:7: '],
    [
      'with an invalid value',
      '<system version="1">\n<cpu numaid="a"/></system>',
      'bad.xml:2:1: <cpu>: numaid="a", expected',
    ],
  ])('a topology file %s ends the job before it starts', async (_name, content, message) => {
    await writeFile(join(directory, 'bad.xml'), content);
    const { status, stdout, stderr } = await run({ NCCL_TOPO_FILE: 'bad.xml' });
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toContain(`NCCL_TOPO_FILE: ${directory}/${message}`);
    expect(stderr.trim().split('\n')).toHaveLength(2);
    expect(stderr).toContain('next: correct the file, or unset NCCL_TOPO_FILE');
  });

  it('a missing topology file ends the job before it starts', async () => {
    const { status, stdout, stderr } = await run({ NCCL_TOPO_FILE: '/nowhere/machine.xml' });
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toContain('NCCL_TOPO_FILE: /nowhere/machine.xml: no such file or directory');
  });
});
