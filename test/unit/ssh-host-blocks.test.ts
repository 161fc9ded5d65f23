/** Which hosts ssh is asked about, and that the others get the answer it would have given. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SshConfiguration } from '../../launcher/remote/ssh-config/configuration.ts';
import { HostBlocks } from '../../launcher/remote/ssh-config/host-blocks.ts';
import { findProgram } from '../rig/capability.ts';
import { seededRandom } from '../rig/random.ts';

function share(text: string, name: string) {
  return HostBlocks.read([{ path: 'f', text }])?.of(name) ?? null;
}

function to(name: string) {
  return { name, user: null, port: null };
}

describe('HostBlocks', () => {
  test('hosts are of one kind unless blocks differ in more than the host name', () => {
    const text = 'Host h1\n  HostName 10.0.0.1\nHost h2\n  HostName %h.lab\nHost h?\n  User ann\nHost *\n  Port 23\n';
    expect(share(text, 'h1')).toEqual({ kind: 'f:5\nf:7', hostName: '10.0.0.1' });
    expect(share(text, 'h2')).toEqual({ kind: 'f:5\nf:7', hostName: 'h2.lab' });
    expect(share(text, 'h33')).toEqual({ kind: 'f:7', hostName: 'h33' });
  });

  test.each([
    ['Match user ann\n'],
    ['Host a\n  Include more\n'],
    ['Include %d/more\n'],
    ['UserKnownHostsFile ~/.ssh/%h\n'],
    ['IdentityAgent /run/%r\n'],
    ['Host=a\n'],
    ['Host "a"\n'],
    ['Host A\n'],
    ['Host a # b\n'],
    ['HostName "b"\n'],
    ['HostName %n.lab\n'],
    ['Host a\n  HostName b\nHost *\n  HostName c\n'],
  ])('HostBlocks leaves %j to ssh', (text) => expect(share(text, 'a')).toBeNull());

  test('HostBlocks leaves names with capitals and unreadable files to ssh', () => {
    expect(share('User ann\n', 'A')).toBeNull();
    expect(HostBlocks.read([{ path: 'f', text: null }])).toBeNull();
  });
});

describe.skipIf(findProgram('ssh') === null)("SshConfiguration with the system's ssh", () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ncclrun-blocks-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  /** Its configuration and an ssh that writes down what it is asked about. */
  function prepare(name: string, text: string) {
    const home = join(directory, name);
    mkdirSync(home);
    const file = join(home, 'config');
    const log = join(home, 'log');
    writeFileSync(file, text);
    writeFileSync(log, '');
    const program = join(home, 'ssh');
    writeFileSync(program, `#!/bin/sh\nfor host; do :; done\necho "$host" >>${log}\nexec ssh -F ${file} "$@"\n`, {
      mode: 0o755,
    });
    return {
      configuration: new SshConfiguration([program]),
      asked: () => readFileSync(log, 'utf8').trim().split('\n'),
    };
  }

  test('ssh is asked once if blocks only rename hosts, and once per kind otherwise', async () => {
    const names = prepare('names', 'Host h1\n  HostName 10.0.0.1\nHost h2\n  HostName 10.0.0.2\nHost *\n  User ann\n');
    const answers = await Promise.all(['h1', 'h2', 'h3'].map((name) => names.configuration.of(to(name))));
    expect(answers.map(({ settings }) => settings.get('hostname'))).toEqual([['10.0.0.1'], ['10.0.0.2'], ['h3']]);
    expect(names.asked()).toEqual(['localhost']);

    const kinds = prepare('kinds', 'Host n*\n  User ann\n  HostName %h.lab\nHost github.com\n  Port 443\n');
    const hosts = ['n1', 'm1', 'n2', 'n3'];
    const output = await Promise.all(hosts.map((name) => kinds.configuration.of(to(name))));
    expect(output.map(({ settings }) => settings.get('hostname'))).toEqual([
      ['n1.lab'],
      ['m1'],
      ['n2.lab'],
      ['n3.lab'],
    ]);
    expect(kinds.asked()).toEqual(['localhost', 'n1']);
  });

  test('ssh is asked about every host if names are canonicalized or paths contain the host', async () => {
    const canonical = prepare('canonical', 'CanonicalizeHostname always\nCanonicalDomains invalid\n');
    await Promise.all(['127.0.0.1', '127.0.0.2'].map((name) => canonical.configuration.of(to(name))));
    expect(canonical.asked().toSorted()).toEqual(['127.0.0.1', '127.0.0.2', 'localhost']);

    const own = prepare('own', 'UserKnownHostsFile /k/%h\n');
    const { settings } = await own.configuration.of(to('h1'));
    expect(settings.get('userknownhostsfile')).toEqual(['/k/h1']);
  });

  test('the answer equals that of ssh for random blocks', async () => {
    const random = seededRandom(4);
    const pick = <Item>(items: readonly [Item, ...Item[]]) => items[random(items.length)] ?? items[0];
    const patterns = ['h1', 'h2', 'h*', '*2', '?1', '!h1', '!x*', '*', 'localhost', 'x.lab', '10.0.*'] as const;
    const lines = [
      'HostName 10.0.0.1',
      'HostName %h.lab',
      'HostName X.lab',
      'User ann',
      'User bob',
      'Port 23',
      'ProxyJump x',
      'IdentityFile ~/%h',
      'IdentityAgent /run/%h',
      'HostKeyAlias lab # h',
      'ControlPath ~/%C',
      'StrictHostKeyChecking accept-new',
    ] as const;
    const block = () => {
      const body = Array.from({ length: 1 + random(2) }, () => `  ${pick(lines)}\n`).join('');
      return random(8) === 0
        ? `Match ${pick(['all', 'user root', 'host h1'])}\n${body}`
        : `Host ${Array.from({ length: 1 + random(3) }, () => pick(patterns)).join(' ')}\n${body}`;
    };
    const cases = Array.from({ length: 40 }, () => Array.from({ length: random(5) }, block).join(''));
    for (const [index, text] of cases.entries()) {
      const { configuration } = prepare(`random${index}`, text);
      for (const name of ['h1', 'h2', 'x.lab', '10.0.0.1']) {
        const [ours, its] = await Promise.all([configuration.of(to(name)), configuration.ask(['--', name])]);
        // A path of a socket that we never use.
        const seen = [ours, its].map(({ settings }) => [...settings].filter(([setting]) => setting !== 'controlpath'));
        expect({ text, name, settings: Object.fromEntries(seen[0] ?? []) }).toEqual({
          text,
          name,
          settings: Object.fromEntries(seen[1] ?? []),
        });
      }
    }
  });
});
