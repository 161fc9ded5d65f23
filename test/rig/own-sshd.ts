/** An sshd of this process, and what ssh would say of the hosts that it plays. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import ssh2 from 'ssh2';

/** A key in a format that the package ssh2 reads, and the same as a line of known_hosts has it. */
export function ownKey() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const text = privateKey.export({ type: 'sec1', format: 'pem' }).toString();
  const parsed = ssh2.utils.parseKey(text);
  if (parsed instanceof Error) throw parsed;
  const blob = parsed.getPublicSSH();
  return { text, blob, line: `ecdsa-sha2-nistp256 ${blob.toString('base64')}` };
}

/** What it does about a command: its channel, and the words. */
export type Exec = (channel: ssh2.ServerChannel, command: string) => void;

interface Conduct {
  /** Null: it refuses every command. */
  readonly exec?: Exec | null;
  /** Whether it connects others to what lies behind it. */
  readonly forwards?: boolean;
}

export class OwnSshd {
  readonly key = ownKey();
  /** All connections so far, and how many of them are open. */
  readonly connections: Socket[] = [];
  /** `user method` of each attempt to log in. */
  readonly attempts: string[] = [];
  readonly #server: Server;

  /** `user`: the key that it lets in. */
  constructor(user: Buffer, { exec = null, forwards = false }: Conduct) {
    this.#server = createServer((socket) => {
      this.connections.push(socket);
      const server = new ssh2.Server({ hostKeys: [this.key.text] }, (client) => {
        client.on('error', () => undefined);
        client.on('authentication', (context) => {
          this.attempts.push(`${context.username} ${context.method}`);
          if (context.method === 'publickey' && context.key.data.equals(user)) context.accept();
          else context.reject(['publickey']);
        });
        client.on('session', (accept) => {
          accept().on('exec', (take, refuse, { command }) => (exec === null ? refuse() : exec(take(), command)));
        });
        client.on('tcpip', (accept, refuse, { destIP, destPort }) => {
          if (!forwards) return refuse();
          const onward = connect(destPort, destIP, () => {
            const channel = accept();
            channel.pipe(onward).pipe(channel);
          });
          onward.on('error', () => undefined);
          return undefined;
        });
      });
      server.injectSocket(socket);
    });
  }

  async listen(): Promise<number> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('it listens on no port');
    return address.port;
  }

  get open(): number {
    return this.connections.filter(({ destroyed }) => !destroyed).length;
  }

  close(): void {
    for (const socket of this.connections) socket.destroy();
    this.#server.close();
  }
}

const blockOf = (host: string): string => `Host ${host}\n  HostName 127.0.0.1\n  Port ${host}\n`;

/** A program that answers `ssh -G HOST` with these settings of the host, all of which are on this machine. */
export function playedSsh(directory: string, hosts: Readonly<Record<string, readonly string[]>>): string {
  mkdirSync(directory, { recursive: true });
  for (const [host, settings] of Object.entries(hosts)) {
    writeFileSync(join(directory, `of-${host}`), settings.map((line) => `${line}\n`).join(''));
  }
  writeFileSync(join(directory, 'config'), Object.keys(hosts).map(blockOf).join(''));
  const program = join(directory, 'ssh');
  const script = `#!/bin/sh
for word; do :; done
echo "debug1: Reading configuration data $(dirname "$0")/config"
cat "$(dirname "$0")/of-$word" 2>/dev/null || echo "hostname $word"
`;
  writeFileSync(program, script, { mode: 0o755 });
  return program;
}
