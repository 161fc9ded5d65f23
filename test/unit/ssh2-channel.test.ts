/** What our own ssh makes of a command that ends before it has begun: an sshd of this process says everything at once. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SshConfiguration } from '../../launcher/remote/ssh-config/configuration.ts';
import { Ssh2 } from '../../launcher/remote/ssh2/ssh2.ts';
import { findProgram } from '../rig/capability.ts';
import { hostNamed } from '../rig/host-slots.ts';

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-channel-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function nothing(): void {}

/** By ssh-keygen: of the keys that the package ssh2 makes it cannot read all. */
function makeKey(name: string) {
  const path = join(directory, name);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path]);
  return { path, private: readFileSync(path, 'utf8'), public: readFileSync(`${path}.pub`, 'utf8').trim() };
}

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** The command's start, its words, its status and its end in one packet. */
function serve(hostKey: string, socket: Socket): void {
  const server = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
    client.on('error', () => {});
    client.on('authentication', (context) => context.accept());
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec) => {
        socket.cork();
        const channel = acceptExec();
        channel.stderr.write('no such command\n');
        channel.exit(127);
        channel.close();
        socket.uncork();
      });
    });
  });
  server.injectSocket(socket);
}

test.skipIf(findProgram('ssh') === null)(
  'the channel delivers exit status, output and end that arrive together with its start',
  async () => {
    const [host, user] = [makeKey('host'), makeKey('user')];
    const server = createServer((socket) => serve(host.private, socket)).listen(0, '127.0.0.1');
    await new Promise((resolve) => {
      server.once('listening', resolve);
    });
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const config = file(
      'config',
      [
        `Port ${port}`,
        `User ${userInfo().username}`,
        `IdentityFile ${user.path}`,
        `UserKnownHostsFile ${file('known_hosts', `[127.0.0.1]:${port} ${host.public}\n`)}`,
        'IdentityAgent none',
        '',
      ].join('\n'),
    );
    const way = new Ssh2(new SshConfiguration(['ssh', '-F', config]));
    const { link, exit } = await way.start(hostNamed('127.0.0.1'), 'anything', {
      remoteShell: nothing,
      step: nothing,
      staging: nothing,
    });
    link.open({ frame: nothing, closed: nothing });
    expect(await exit).toEqual({ status: 127, stderr: 'no such command\n' });
    server.close();
  },
);
