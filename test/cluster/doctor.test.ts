/** `ncclrun doctor` over hosts that have each another fault: every one is found and named, and nothing else. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository, type ClusterHost } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile, compileLibrary } from '../rig/compile.ts';

const document = v.object({
  seconds: v.number(),
  findings: v.array(
    v.object({
      check: v.string(),
      answer: v.string(),
      host: v.nullable(v.string()),
      subject: v.string(),
      message: v.string(),
      remedy: v.nullable(v.string()),
    }),
  ),
});
type Finding = v.InferOutput<typeof document>['findings'][number];

/** h1 is well. */
const HOSTS = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7', 'h8', 'h9', 'h10'];

/** All of the goal's only in the long run. */
const ROUNDS = (process.env['NCCLRUN_TEST_LONG'] ?? '') === '' ? 2 : 20;

const withoutFuse = existsSync('/dev/fuse') ? null : 'there is no /dev/fuse';

describeIf(clusterUnavailable() ?? withoutFuse, 'ncclrun doctor', () => {
  let cluster: Cluster;
  let directory = '';
  const background: ChildProcess[] = [];
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-doctor-'));
    cluster = await Cluster.start(HOSTS.length);
  });
  afterAll(async () => {
    for (const child of background) child.kill('SIGKILL');
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  async function examined(
    ...words: readonly string[]
  ): Promise<{ bad: Finding[]; status: number | null; text: string }> {
    const { stdout, stderr, status } = await Command.run(['doctor', '-H', HOSTS.join(','), '--json', ...words], {
      cluster,
    });
    const { findings } = v.parse(document, JSON.parse(stdout));
    const bad = findings.filter(({ answer }) => answer === 'fail' || answer === 'warn' || answer === 'unknown');
    return { bad, status, text: `${JSON.stringify(bad, null, 1)}\n${stderr}` };
  }

  /** Goes on in the host until the tests are over; resolves with its first output. */
  async function inBackground(host: ClusterHost, ...argv: readonly string[]): Promise<string> {
    const child = spawn('nsenter', ['--target', String(host.init), '--all', '--', ...argv], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    background.push(child);
    const [bytes] = await once(child.stdout, 'data');
    return String(bytes);
  }

  it('hosts that are well have no complaint, however often they are looked at', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { bad, status, text } = await examined('--quick');
      expect(bad, text).toEqual([]);
      expect(status).toBe(0);
    }
  });

  it('each planted fault is found on its host, and nothing else', async () => {
    const on = (name: string, ...argv: readonly string[]) => cluster.host(name).exec(...argv);
    await on('h2', 'sh', '-c', 'dd if=/dev/zero of=/dev/shm/full bs=1M 2>/dev/null; true');
    await cluster.host('h3').rate('100mbit');
    await cluster.host('h4').loss(0.02);
    // Whatever program reads it there.
    await on('h5', 'mkdir', '/tmp/upper', '/tmp/work');
    await on(
      'h5',
      'mount',
      '-t',
      'overlay',
      '-o',
      'lowerdir=/etc,upperdir=/tmp/upper,workdir=/tmp/work',
      'overlay',
      '/etc',
    );
    await on('h5', 'sh', '-c', `echo ${await compileLibrary(directory, 'clock-ahead')} >/etc/ld.so.preload`);
    const sshd = cluster
      .host('h6')
      .processes()
      .find(({ argv }) => argv[0]?.includes('sshd') === true);
    await Command.run(['--pid', String(sshd?.pid), '--memlock=65536:65536'], { program: 'prlimit' });
    await on('h7', 'mkdir', '-p', join(process.env['HOME'] ?? '/root', '.cache'));
    await on('h7', 'mount', '-t', 'tmpfs', '-o', 'noexec', 'tmpfs', join(process.env['HOME'] ?? '/root', '.cache'));
    await on('h8', 'ip', 'link', 'set', 'dev', 'eth0', 'mtu', '1300');
    expect(await inBackground(cluster.host('h9'), 'sh', '-c', 'echo busy; while :; do :; done')).toBe('busy\n');
    await on('h10', 'mkdir', '-p', '/tmp/data');
    expect(
      await inBackground(cluster.host('h10'), await compile('test/rig/programs/silent-fuse.c', directory), '/tmp/data'),
    ).toBe('mounted\n');

    const { bad, status, text } = await examined();
    const found = (host: string) => bad.filter((finding) => finding.host === host).map(({ check }) => check);
    expect(found('h1'), text).toEqual([]);
    expect(found('h2'), text).toEqual(['shared-memory.size']);
    expect(found('h3'), text).toContain('network.bandwidth');
    expect(
      found('h3').filter((check) => !check.startsWith('network.')),
      text,
    ).toEqual([]);
    expect(found('h4'), text).toContain('network.loss');
    expect(
      found('h4').filter((check) => !check.startsWith('network.')),
      text,
    ).toEqual([]);
    expect(found('h5'), text).toEqual(['time.offset']);
    expect(found('h6'), text).toEqual(['limits.locked-memory']);
    expect(found('h7'), text).toEqual(['files.exec']);
    expect(found('h8'), text).toEqual(['network.mtu']);
    expect(found('h9'), text).toEqual(['cpu.load']);
    expect(found('h10'), text).toEqual(['files.hang']);
    expect(
      bad.filter(({ host }) => host === null),
      text,
    ).toEqual([]);
    expect(
      bad.every(({ remedy }) => remedy !== null && remedy !== ''),
      text,
    ).toBe(true);
    expect(status).toBe(1);
  });
});
