/**
 * What we add to the user's ssh configuration, and only where that is silent. OpenSSH's default key exchange costs 75 ms of
 * computing per connection; curve25519, which every server since 2014 knows, a few.
 */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export type SshOption = readonly [name: string, value: string];

/**
 * The lease on the link finds a silent host sooner than ServerAlive does; that one only ends an ssh whose launcher was killed
 * while the host was cut off.
 */
const wanted: readonly SshOption[] = [
  ['KexAlgorithms', '^curve25519-sha256,curve25519-sha256@libssh.org'],
  ['ConnectTimeout', '10'],
  ['ServerAliveInterval', '30'],
];

const defaultsOf = new Map<string, Promise<ReadonlyMap<string, string>>>();

/** Options for `command` (ssh and its first arguments) to a destination. Empty if ssh cannot tell: it will complain itself. */
export async function sshSettings(
  command: readonly string[],
  destination: readonly string[],
): Promise<readonly SshOption[]> {
  const key = command.join(' ');
  const asking = defaultsOf.get(key) ?? settings([...command, '-F', 'none', '-G', '--', 'localhost']);
  defaultsOf.set(key, asking);
  const [defaults, users] = await Promise.all([asking, settings([...command, '-G', ...destination])]);
  return users.size === 0
    ? []
    : wanted.filter(([name]) => users.get(name.toLowerCase()) === defaults.get(name.toLowerCase()));
}

/** `ssh -G`: one setting a line, the name in lower case. */
async function settings([program = 'ssh', ...words]: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  child.on('error', () => {});
  const lines = (await text(child.stdout)).split('\n');
  return new Map(lines.map((line) => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1)]));
}
