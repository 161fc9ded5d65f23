/** The state directory of a cluster: keys, sshd and ssh configuration, name tables. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../capability.ts';

const execFileAsync = promisify(execFile);

export interface HostAddress {
  readonly name: string;
  readonly address: string;
}

/** Not under /tmp: every host has that for itself. */
export function makeStateDirectory(): Promise<string> {
  return mkdtemp('/var/tmp/ncclrun-cluster-');
}

async function makeKey(file: string, comment: string): Promise<string> {
  await execFileAsync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', comment, '-f', file]);
  const [type, key] = (await readFile(`${file}.pub`, 'utf8')).split(' ');
  return `${type} ${key}`;
}

function sshdConfig(state: string, host: HostAddress, extra: string): string {
  return [
    'Port 22',
    `ListenAddress ${host.address}`,
    `HostKey ${state}/${host.name}/hostkey`,
    `PidFile ${state}/${host.name}/sshd.pid`,
    `AuthorizedKeysFile ${state}/authorized_keys`,
    'StrictModes no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'UsePAM no',
    'UseDNS no',
    'PrintMotd no',
    extra,
    '',
  ].join('\n');
}

export interface SshClient {
  /** Directory with an `ssh` that knows the cluster; goes to the front of the PATH. */
  readonly bin: string;
  readonly config: string;
}

export interface SshClientOptions {
  readonly knownHosts: string;
  readonly identity: string;
  /** Lines of ssh_config that go before ours (the first value of an option wins). */
  readonly extra?: string;
}

/** Writes an ssh client's configuration and a wrapper for it under `name`. */
export async function writeSshClient(
  state: string,
  name: string,
  hosts: readonly HostAddress[],
  options: SshClientOptions,
): Promise<SshClient> {
  const bin = join(state, name);
  const config = join(bin, 'ssh_config');
  await mkdir(bin, { recursive: true });
  const lines = [
    ...hosts.flatMap((host) => [`Host ${host.name}`, `  HostName ${host.address}`]),
    'Host *',
    options.extra ?? '',
    `  User ${process.env['USER'] ?? 'root'}`,
    `  IdentityFile ${options.identity}`,
    '  IdentitiesOnly yes',
    `  UserKnownHostsFile ${options.knownHosts}`,
    '  GlobalKnownHostsFile /dev/null',
    '  StrictHostKeyChecking yes',
    '  ConnectTimeout 5',
    '',
  ];
  await writeFile(config, lines.join('\n'));
  await writeFile(join(bin, 'ssh'), `#!/bin/sh\nexec ${findProgram('ssh') ?? 'ssh'} -F ${config} "$@"\n`);
  await chmod(join(bin, 'ssh'), 0o755);
  return { bin, config };
}

/** Fills the state directory; `sshdExtra` is added to every host's sshd configuration. */
export async function writeClusterFiles(
  state: string,
  hosts: readonly HostAddress[],
  sshdExtra: string,
): Promise<SshClient> {
  const identity = join(state, 'id');
  const [, ...knownHosts] = await Promise.all([
    makeKey(identity, 'cluster'),
    ...hosts.map(async (host) => {
      const directory = join(state, host.name);
      await mkdir(directory);
      await writeFile(join(directory, 'address'), host.address);
      await writeFile(join(directory, 'sshd_config'), sshdConfig(state, host, sshdExtra));
      return `${host.name},${host.address} ${await makeKey(join(directory, 'hostkey'), host.name)}\n`;
    }),
  ]);
  await copyFile(`${identity}.pub`, join(state, 'authorized_keys'));
  await writeFile(join(state, 'known_hosts'), knownHosts.join(''));
  const names = ['127.0.0.1 localhost', '10.77.0.1 login', ...hosts.map((host) => `${host.address} ${host.name}`), ''];
  await writeFile(join(state, 'etc_hosts'), names.join('\n'));
  // Names come from the table alone: an unknown one fails at once and in the same way on every machine.
  await writeFile(
    join(state, 'nsswitch'),
    'passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\n',
  );
  return writeSshClient(state, 'bin', hosts, { knownHosts: join(state, 'known_hosts'), identity });
}
