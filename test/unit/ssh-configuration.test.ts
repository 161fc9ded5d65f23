/** What ssh -G is asked and what its answers mean, with an ssh that the test plays; and settings of our own ssh at their borders. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { destinationWords, SshConfiguration } from '../../launcher/remote/ssh-config/configuration.ts';
import { sentEnvironment } from '../../launcher/remote/ssh2/sent-environment.ts';
import { hopSettings, parseJump } from '../../launcher/remote/ssh2/settings.ts';
import { loginOf, sshTrial } from '../../launcher/remote/shell/shell.ts';
import { SilenceWatch } from '../../launcher/remote/shell/silence.ts';
import { turn } from '../rig/scripted-host.ts';
import { hostNamed } from '../rig/host-slots.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-ssh-configuration-'));
afterAll(() => rmSync(root, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

let number = 0;
/** `answers`: what it prints about a host; `configuration`: the text of the file that it reads. */
function playedSsh(answers: Readonly<Record<string, string>>, configuration = '') {
  const directory = join(root, String(number++));
  mkdirSync(directory);
  const file = join(directory, 'config');
  writeFileSync(file, configuration);
  for (const [host, text] of Object.entries(answers)) writeFileSync(join(directory, `of-${host}`), text);
  const program = join(directory, 'ssh');
  const script = `#!/bin/sh
for word; do :; done
echo "$*" >>"$(dirname "$0")/asked"
echo "debug1: Reading configuration data ${file}"
cat "$(dirname "$0")/of-$word" 2>/dev/null || echo "hostname $word"
`;
  writeFileSync(program, script, { mode: 0o755 });
  const asked = () =>
    readFileSync(join(directory, 'asked'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/^-v -G /u, ''));
  return { ssh: new SshConfiguration([program]), asked, file };
}

const to = (name: string, user: string | null = null, port: number | null = null) => ({ name, user, port });

describe('the answers of ssh', () => {
  test('a setting may have several values, and lines for debugging are none', async () => {
    const { ssh, file } = playedSsh({
      localhost: 'host localhost\r\nhostname h.lab\ndebug2: port 9\nidentityfile a b\nidentityfile c\nport 23\nempty\n',
    });
    const { settings, files, error } = await ssh.general;
    expect([files, error]).toEqual([[file], null]);
    expect([...settings].filter(([name]) => name !== '')).toEqual([
      ['host', ['localhost']],
      ['hostname', ['h.lab']],
      ['identityfile', ['a b', 'c']],
      ['port', ['23']],
      ['empty', ['']],
    ]);
  });

  test('an answer without a host name is an error, the last line of it', async () => {
    const { ssh } = playedSsh({ localhost: 'Bad owner\n/etc/ssh: line 3: bad option\n\ndebug1: more\n \n' });
    expect(await ssh.general).toMatchObject({ settings: new Map(), error: '/etc/ssh: line 3: bad option' });
    const silent = new SshConfiguration(['/nonexistent/ssh']);
    expect(await silent.general).toEqual({ settings: new Map(), files: [], error: null });
    expect(await silent.of(to('h'))).toEqual(await silent.general);
  });

  test('the same question is asked once, with user and port', async () => {
    const { ssh, asked } = playedSsh({}, 'Match user ann\n');
    await ssh.of(to('h', 'ann', 2222));
    await ssh.of(to('h', 'ann', 2222));
    expect(asked().toSorted()).toEqual(['-- localhost', '-l ann -p 2222 -- h']);
    expect([
      destinationWords('-x', null, null),
      destinationWords('h', 'u', null),
      destinationWords('h', null, 1),
    ]).toEqual([
      ['--', '-x'],
      ['-l', 'u', '--', 'h'],
      ['-p', '1', '--', 'h'],
    ]);
  });

  test('hosts of one kind share an answer, with a name of their own', async () => {
    const { ssh, asked } = playedSsh({}, 'Host h2\n  HostName h2.lab\n');
    const found = await Promise.all(
      ['h1', 'h2', 'h3'].map(async (name) => (await ssh.of(to(name))).settings.get('hostname')?.[0]),
    );
    expect([found, asked()]).toEqual([['h1', 'h2.lab', 'h3'], ['-- localhost']]);
  });

  test.each([
    ['names are canonical', 'hostname localhost\ncanonicalizehostname yes\n', ['-- h1', '-- localhost']],
    ['names are not canonical', 'hostname localhost\ncanonicalizehostname false\n', ['-- localhost']],
    ['names are left as they are', 'hostname localhost\ncanonicalizehostname no\n', ['-- localhost']],
    ['ssh calls the host otherwise', 'hostname other\n', ['-- h1', '-- localhost']],
  ])('each host is asked about where %s: %j', async (_where, answer, questions) => {
    const { ssh, asked } = playedSsh({ localhost: answer });
    await ssh.of(to('h1'));
    expect(asked().toSorted()).toEqual(questions);
  });

  test('a file is searched for words, and one that cannot be read may have them', async () => {
    const { ssh } = playedSsh({}, 'Ciphers x\n');
    expect([
      await ssh.mentions(/ciphers/iu),
      await ssh.mentions(/macs/iu, /ciphers/iu),
      await ssh.mentions(/macs/iu),
    ]).toEqual([true, true, false]);
    const gone = playedSsh({});
    rmSync(gone.file);
    expect(await gone.ssh.mentions(/macs/iu)).toBe(true);
  });
});

const of = (settings: Readonly<Record<string, string>>) =>
  hopSettings(to('h'), {
    settings: new Map(Object.entries({ hostname: 'h', ...settings }).map(([name, value]) => [name, [value]])),
    files: [],
    error: null,
  });

const sent = (settings: Readonly<Record<string, readonly string[]>>) =>
  sentEnvironment(new Map(Object.entries(settings)), { A: '1', B: undefined });

describe('settings of our own ssh', () => {
  test('switches are on only with their word', () => {
    expect([
      of({ identitiesonly: 'yes' }).identitiesOnly,
      of({ identitiesonly: 'no' }).identitiesOnly,
      of({}).identitiesOnly,
    ]).toEqual([true, false, false]);
    expect([of({ hashknownhosts: 'yes' }).hashKnownHosts, of({ hashknownhosts: 'no' }).hashKnownHosts]).toEqual([
      true,
      false,
    ]);
    expect([
      of({ addressfamily: 'inet' }).family,
      of({ addressfamily: 'inet6' }).family,
      of({ addressfamily: 'any' }).family,
    ]).toEqual([4, 6, 0]);
    expect([
      of({ connecttimeout: '7' }).connectSeconds,
      of({ connecttimeout: 'none' }).connectSeconds,
      of({ connecttimeout: '0' }).connectSeconds,
    ]).toEqual([7, 10, 10]);
    expect([of({ bindaddress: '10.0.0.1' }).bindAddress, of({ bindaddress: 'none' }).bindAddress, of({}).port]).toEqual(
      ['10.0.0.1', null, 22],
    );
  });

  test('files of known hosts are those of the answer, or the usual ones', () => {
    expect([
      of({ globalknownhostsfile: '/a /b' }).globalKnownHosts,
      of({ globalknownhostsfile: 'none' }).globalKnownHosts,
      of({}).userKnownHosts,
    ]).toEqual([['/a', '/b'], [], []]);
    expect(hopSettings(to('h'), { settings: new Map(), files: [], error: null }).globalKnownHosts).toEqual([
      '/etc/ssh/ssh_known_hosts',
    ]);
    expect([of({ identityfile: 'none' }).identityFiles, of({ identityfile: '/k' }).identityFiles]).toEqual([
      [],
      ['/k'],
    ]);
  });

  test.each<[string | null, string | null, string | null]>([
    [null, '/agent', '/agent'],
    [null, '', null],
    ['SSH_AUTH_SOCK', '/agent', '/agent'],
    ['none', '/agent', null],
    ['$NCCLRUN_TEST_AGENT', '/agent', '/mine'],
    ['$NCCLRUN_TEST_NONE', '/agent', null],
    ['${NCCLRUN_TEST_AGENT}/x', '/agent', '/mine/x'],
    ['/run/%h', '/agent', '/run/h'],
  ])('IdentityAgent %j with the agent %j of the environment is %j', (value, usual, socket) => {
    vi.stubEnv('SSH_AUTH_SOCK', usual ?? '');
    vi.stubEnv('NCCLRUN_TEST_AGENT', '/mine');
    expect(of(value === null ? {} : { identityagent: value }).agent).toBe(socket);
  });

  test('a jump host may have a user and a port', () => {
    expect(['@h', 'a@', 'h:', '::1'].map((text) => parseJump(text))).toEqual([
      { name: 'h', user: '', port: null },
      { name: '', user: 'a', port: null },
      { name: 'h:', user: null, port: null },
      { name: '::1', user: null, port: null },
    ]);
  });

  test('variables are sent that a pattern names, and those that SetEnv states', () => {
    expect([sent({}), sent({ sendenv: ['A B'] }), sent({ setenv: ['=x', 'C=2'] })]).toEqual([{}, {}, { C: '2' }]);
    expect(sent({ sendenv: ['A'] })).toEqual({ A: '1' });
    expect(sentEnvironment(new Map([['sendenv', ['A-*', 'C:1']]]), { 'A-B': '1', 'C:1': '2', AB: '3' })).toEqual({
      'A-B': '1',
      'C:1': '2',
    });
  });
});

test('a trial by hand names the login, and more output where it is wanted', () => {
  const host = hostNamed('h', { user: 'ann' });
  expect([
    loginOf(host),
    loginOf(hostNamed('h')),
    sshTrial(['ssh', '-p', '2'], host, true),
    sshTrial(['ssh'], host, false),
  ]).toEqual(['ann@h', 'h', 'ssh -p 2 -v ann@h true', 'ssh ann@h true']);
});

test('a host is silent after three ticks of two seconds without a byte, once', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let silent = 0;
  const watch = new SilenceWatch(() => (silent += 1));
  const ticks = async (count: number) => {
    for (let tick = 0; tick < count; tick++) {
      vi.advanceTimersByTime(2000);
      await turn();
    }
    return silent;
  };
  expect(await ticks(2)).toBe(0);
  watch.received();
  expect([await ticks(2), await ticks(1), await ticks(5)]).toEqual([0, 1, 1]);
  watch.stop();
  watch.received();
  expect(await ticks(4)).toBe(1);
  vi.useRealTimers();
});
