/** What may be wrong with a host of a cluster, for tests of `ncclrun doctor`, and what that says of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Cluster, type ClusterHost, repository } from './cluster.ts';
import { Command } from './command.ts';
import { compile, compileLibrary } from './compile.ts';

const document = v.object({
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

interface Examined {
  readonly bad: readonly Finding[];
  readonly status: number | null;
  /** For messages of tests. */
  readonly text: string;
}

export async function examined(cluster: Cluster, ...words: readonly string[]): Promise<Examined> {
  const hosts = cluster.hosts.map(({ name }) => name).join(',');
  const { stdout, stderr, status } = await Command.run(['doctor', '-H', hosts, '--json', ...words], { cluster });
  const { findings } = v.parse(document, JSON.parse(stdout));
  const bad = findings.filter(({ answer }) => answer === 'fail' || answer === 'warn' || answer === 'unknown');
  return { bad, status, text: `${JSON.stringify(bad, null, 1)}\n${stderr}` };
}

/** Goes on in the host until the process of the test ends it; resolves once it has printed something. */
export async function inBackground(host: ClusterHost, ...argv: readonly string[]): Promise<Disposable> {
  const child = spawn('nsenter', ['--target', String(host.init), '--all', '--', ...argv], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return { [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

export async function fillSharedMemory(host: ClusterHost): Promise<void> {
  await host.exec('sh', '-c', 'fallocate -l $(df -B1 --output=avail /dev/shm | tail -1) /dev/shm/full');
}

/** Whatever program reads it there. `directory`: for a library. */
export async function setClockAhead(host: ClusterHost, directory: string): Promise<void> {
  const layers = 'lowerdir=/etc,upperdir=/tmp/upper,workdir=/tmp/work';
  await host.exec('mkdir', '/tmp/upper', '/tmp/work');
  await host.exec('mount', '-t', 'overlay', '-o', layers, 'overlay', '/etc');
  await host.exec('sh', '-c', `echo ${await compileLibrary(directory, 'clock-ahead')} >/etc/ld.so.preload`);
}

export async function lowerLockedMemory(host: ClusterHost): Promise<void> {
  const sshd = host.processes().find(({ argv }) => argv[0]?.includes('sshd') === true);
  await Command.run(['--pid', String(sshd?.pid), '--memlock=65536:65536'], { program: 'prlimit' });
}

export async function forbidPrograms(host: ClusterHost): Promise<void> {
  const cache = join(process.env['HOME'] ?? '/root', '.cache');
  await host.exec('mkdir', '-p', cache);
  await host.exec('mount', '-t', 'tmpfs', '-o', 'noexec', 'tmpfs', cache);
}

/** `directory`: for its file. */
export async function installOtherVersion(host: ClusterHost, directory: string): Promise<void> {
  const description = await readFile(join(repository, 'package.json'), 'utf8');
  const other = join(directory, 'package.json');
  await writeFile(other, description.replace(/"version": "[^"]*"/u, '"version": "0.0.1"'));
  await host.exec('mount', '--bind', other, join(repository, 'package.json'));
}

export async function shrinkPackets(host: ClusterHost): Promise<void> {
  await host.exec('ip', 'link', 'set', 'dev', 'eth0', 'mtu', '1300');
}

/** A mount whose server does not answer. `directory`: for its program. */
export async function mountSilence(host: ClusterHost, directory: string): Promise<Disposable> {
  await host.exec('mkdir', '-p', '/tmp/data');
  return inBackground(host, await compile('test/rig/programs/silent-fuse.c', directory), '/tmp/data');
}
