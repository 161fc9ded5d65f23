/** More sshds on a host of a cluster than the one it has: on another port, with a certificate, with other rules. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../capability.ts';
import type { Cluster } from '../cluster.ts';
import { until } from '../until.ts';

const execFileAsync = promisify(execFile);

/** Starts an sshd that has the host's key on `port`, with `lines` before the usual configuration (the first value counts). */
export async function startSshd(
  cluster: Cluster,
  host: string,
  port: number,
  lines: readonly string[] = [],
): Promise<void> {
  const directory = join(cluster.state, host, `sshd-${port}`);
  await mkdir(directory);
  const usual = await readFile(join(cluster.state, host, 'sshd_config'), 'utf8');
  const kept = usual.split('\n').filter((line) => !/^(Port|PidFile) /.test(line));
  const pidFile = join(directory, 'sshd.pid');
  const config = join(directory, 'sshd_config');
  await writeFile(config, [...lines, `Port ${port}`, `PidFile ${pidFile}`, ...kept].join('\n'));
  await cluster.host(host).exec(findProgram('sshd') ?? 'sshd', '-f', config, '-E', join(directory, 'log'));
  await until(`sshd on port ${port} of ${host}`, () => existsSync(pidFile)); // it listens before it writes that
}

/** A key pair; the public half is in FILE.pub. Resolves to "type key". */
export async function makeKeyPair(file: string, ...options: readonly string[]): Promise<string> {
  await execFileAsync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', ...options, '-f', file]);
  return publicKey(file);
}

/** "type key" of FILE.pub. */
export async function publicKey(file: string): Promise<string> {
  return (await readFile(`${file}.pub`, 'utf8')).split(' ').slice(0, 2).join(' ');
}

/** Signs FILE.pub: FILE-cert.pub appears beside it. `principals`: the users or hosts it speaks for. */
export async function certify(
  authority: string,
  file: string,
  kind: 'user' | 'host',
  principals: readonly string[],
): Promise<void> {
  const kindOption = kind === 'host' ? ['-h'] : [];
  await execFileAsync('ssh-keygen', [
    '-q',
    '-s',
    authority,
    ...kindOption,
    '-I',
    'test',
    '-n',
    principals.join(','),
    `${file}.pub`,
  ]);
}

/** A host's key under another name, so that a certificate may lie beside it. */
export async function copyHostKey(cluster: Cluster, host: string, to: string): Promise<void> {
  const from = join(cluster.state, host, 'hostkey');
  await copyFile(from, to);
  await copyFile(`${from}.pub`, `${to}.pub`);
}
