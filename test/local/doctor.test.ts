/** `ncclrun doctor` on this machine, on recorded readings, and on command lines that are wrong. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest';
import { hostReadings } from '../../control/readings.ts';
import { machineOf, TOGETHER_VARIABLE } from '../../control/together.ts';
import { allChecks } from '../../launcher/doctor/checks/all.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { wellHost } from '../rig/readings.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-doctor-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('this machine', () => {
  it('the machine is examined without a host named, and a summary is printed', async () => {
    const { stdout, stderr, status } = await Command.run(['doctor', '--quick']);
    expect(stdout).toMatch(/^1 host, \d+\.\d s: .*; \d+ checks ok$/mu);
    expect(stderr).toBe('');
    expect([0, 1]).toContain(status);
  });

  it('readings that were printed are judged from their file', async () => {
    const { stdout } = await Command.run(['doctor', '--readings', '--quick']);
    const file = join(directory, 'here.json');
    await writeFile(file, stdout);
    const judged = await Command.run(['doctor', '--from', file, '-v']);
    expect(judged.stdout).toMatch(/^1 host, /mu);
    expect(judged.stdout).toContain('files.hang  here');
  });
});

it('data that --data names is read, and what is not there is a failure with a remedy', async () => {
  await writeFile(join(directory, 'data'), Buffer.alloc(2 ** 21));
  const { stdout } = await Command.run(['doctor', '--quick', '-v', '--data', 'data'], { directory });
  expect(stdout).toMatch(/^ok {6}files\.data /mu);
  const missing = await Command.run(['doctor', '--quick', '--data', '/no/such/data']);
  expect(missing.stdout).toMatch(
    /^fail {4}files\.data {2}\S+ \/no\/such\/data: it cannot be read: there is no file that can be read\n +next: /mu,
  );
  expect(missing.status).toBe(1);
});

it('the file that other hosts look for is removed when its process is ended', async () => {
  const here = await mkdtemp(join(directory, 'together-'));
  const { stdout } = await Command.run(['doctor', '--readings', '--quick']);
  const { system } = v.parse(hostReadings, JSON.parse(stdout));
  const hosts = [
    { name: 'a', machine: machineOf(system), addresses: [] },
    { name: 'b', machine: 'another', addresses: ['127.0.0.1'] },
  ];
  const order = JSON.stringify({ sign: '0123456789abcdef', port: 19_321, hosts });
  const child = spawn(join(repository, 'bin/ncclrun'), ['doctor', '--readings=together'], {
    cwd: here,
    env: { ...process.env, [TOGETHER_VARIABLE]: order },
  });
  const ended = once(child, 'exit');
  await vi.waitFor(async () => expect(await readdir(here)).toEqual(['.ncclrun-doctor-0123456789abcdef']), 20_000);
  child.kill('SIGTERM');
  await ended;
  expect(await readdir(here)).toEqual([]);
}, 60_000);

it('doctor compares with the run before, which it has kept', async () => {
  const environment = { XDG_CACHE_HOME: directory };
  const none = await Command.run(['doctor', '--quick', '--since', 'last'], { environment });
  expect(none.stderr).toBe('ncclrun: no earlier run on these hosts is kept to compare with\n');
  const { stdout: document } = await Command.run(['doctor', '--quick', '--json'], { environment });
  const kept = await Command.run(['doctor', '--quick', '--since', 'last', '--json'], { environment });
  expect(JSON.parse(kept.stdout)).toMatchObject({
    since: { takenAt: JSON.parse(document).takenAt, changes: expect.any(Array) },
  });
});

it('doctor compares with a file, and says what has changed or that nothing has', async () => {
  const well = await recorded('well', {});
  const file = join(directory, 'earlier.json');
  await writeFile(file, (await Command.run(['doctor', '--from', well, '--json'])).stdout);
  const same = await Command.run(['doctor', '--from', well, '--baseline', file]);
  expect(same.stdout).toMatch(/^since \d{4}-\d\d-\d\d \d\d:\d\d UTC: nothing has changed$/mu);
  const worse = await recorded('well', { memory: { ...wellHost({}).memory, availableBytes: 1 << 20 } });
  const other = await Command.run(['doctor', '--from', worse, '--baseline', file]);
  expect(other.stdout).toMatch(/^since \d{4}-\d\d-\d\d \d\d:\d\d UTC:(?! nothing)/mu);
});

it('a page for a browser is written, which may load nothing and run nothing', async () => {
  const file = join(directory, 'page.html');
  const well = await recorded('w&w', {});
  const { stdout, status } = await Command.run(['doctor', '--from', well, '--html', file]);
  expect([stdout, status]).toEqual([expect.stringMatching(/^1 host, /mu), 0]);
  const page = await readFile(file, 'utf8');
  expect(page).toMatch(
    /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'">/u,
  );
  const style = /<style>(.*?)<\/style>/su.exec(page)?.[1] ?? '';
  expect(page).toContain(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  expect(page).toContain('<th scope="row">w&amp;w</th>');
  expect(page).not.toMatch(/<script|<!--|https?:/u);
});

async function recorded(name: string, changes: Parameters<typeof wellHost>[0]): Promise<string> {
  const file = join(directory, `${name}.json`);
  const readings = wellHost(changes);
  await writeFile(file, JSON.stringify({ ...readings, system: { ...readings.system, machineName: name } }));
  return file;
}

describe('recorded hosts', () => {
  it('a host that differs from two others is named, and the status tells it', async () => {
    const files = [await recorded('a', {}), await recorded('b', {}), await recorded('c', { version: '0.9' })];
    const words = files.flatMap((file) => ['--from', file]);
    expect(await Command.run(['doctor', ...words])).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(
        /^fail {4}ncclrun\.version {2}c: ncclrun 0\.9; a, b|^fail {4}ncclrun\.version {2}c: ncclrun 0\.9; \S+: 1\.0\.0$/mu,
      ),
    });
    expect(await Command.run(['doctor', ...words.slice(0, 4)])).toMatchObject({ status: 0 });
  });

  it('warnings count unless they are said to be ok', async () => {
    const file = await recorded('w', { kernelSettings: { ...wellHost().kernelSettings, removesIpc: true } });
    expect((await Command.run(['doctor', '--from', file])).status).toBe(1);
    expect((await Command.run(['doctor', '--from', file, '--warnings', 'ok'])).status).toBe(0);
  });
});

test.each([
  [['doctor', 'node1'], 2, '"node1" after doctor has no meaning'],
  [['doctor', '--warnings', 'no'], 2, '--warnings is "no"'],
  [['doctor', '--from', '/no/such/file'], 2, '--from /no/such/file cannot be read'],
  [['doctor', '--from', '/dev/null'], 2, '--from /dev/null has no readings'],
  [['doctor', '--readings=together'], 2, '--readings=together needs an order in NCCLRUN_DOCTOR_ORDER'],
  [['doctor', '--passive', '--quick', '--since', '/no/such/file'], 2, '--since /no/such/file cannot be read'],
  [['doctor', '--passive', '--quick', '--since', '/dev/null'], 2, '--since /dev/null is no run of doctor'],
  [['doctor', '--from', '/dev/null', '--html', '/no/such/directory/page'], 2, '--from /dev/null has no readings'],
  [['doctor', '--passive', '--quick', '--html', '/no/such/directory/page'], 2, '--html /no/such/directory/page cannot'],
  [['doctor', '--hostfile', '/no/such/hostfile'], 2, '/no/such/hostfile'],
] as const)('%j is refused with a remedy', async (argv, status, message) => {
  const refused = await Command.run([...argv]);
  expect(refused.stderr).toContain(message);
  expect(refused.stderr).toContain('next: ');
  expect(refused.stderr).not.toMatch(/^\s+at /mu);
  expect(refused.status).toBe(status);
});

it('a host that cannot be reached is named, and the others are examined all the same', async () => {
  const rsh = join(directory, 'rsh');
  await writeFile(rsh, '#!/bin/sh\necho "no route to host" >&2\nexit 255\n', { mode: 0o755 });
  const { stdout, status } = await Command.run(['doctor', '--quick', '--passive', '-H', 'localhost,far', '--rsh', rsh]);
  expect(stdout).toMatch(/^fail {4}host\.reached {2}far: .*no route to host/mu);
  expect(stdout).toMatch(/^2 hosts, /mu);
  expect(status).toBe(125);
});

it('every check has a row in its page', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/doctor.md'), 'utf8');
  for (const { id } of allChecks) expect(page).toContain(`\`${id}\``);
});
