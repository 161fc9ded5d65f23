/** What our own ssh makes of ssh's answers. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../launcher/remote/ssh-config/configuration.ts';
import { expandPath } from '../../launcher/remote/ssh-config/tokens.ts';
import { impossibleAlgorithms, offeredAlgorithms } from '../../launcher/remote/ssh2/algorithms.ts';
import { sentEnvironment } from '../../launcher/remote/ssh2/sent-environment.ts';
import { hopSettings, parseJump } from '../../launcher/remote/ssh2/settings.ts';

const destination = { name: 'n1', user: null, port: null };
const none: Answer = { settings: new Map(), files: [], error: null };
function answer(settings: Readonly<Record<string, readonly string[]>>): Answer {
  return { settings: new Map(Object.entries({ hostname: ['n1.lab'], ...settings })), files: [], error: null };
}
const ours = { kex: false, ciphers: false, macs: false };

describe('settings', () => {
  test('hopSettings uses the defaults of OpenSSH without an answer of ssh', () => {
    const settings = hopSettings(destination, none);
    expect(settings).toMatchObject({ hostName: 'n1', port: 22, strict: 'refuse', jumps: [], connectSeconds: 10 });
    expect(settings.identityFiles).toContain(join(homedir(), '.ssh/id_ed25519'));
    expect(settings.userKnownHosts).toContain(join(homedir(), '.ssh/known_hosts'));
  });

  test("the hostfile's user and port override those of ssh", () => {
    const said = answer({ user: ['ann'], port: ['2222'] });
    expect(hopSettings(destination, said)).toMatchObject({ user: 'ann', port: 2222, keyName: 'n1.lab', keyPort: 2222 });
    expect(hopSettings({ name: 'n1', user: 'bob', port: 23 }, said)).toMatchObject({ user: 'bob', port: 23 });
  });

  test('SendEnv selects variables by pattern, and SetEnv overrides them', () => {
    const settings = answer({
      sendenv: ['LC_*', 'A.C', 'B?'],
      setenv: ['LC_ALL=C', 'EMPTY=', 'EQUALS=a=b c', 'nothing'],
    }).settings;
    const ours = { LC_ALL: 'de', LC_TIME: 'en', XLC_A: '', ABC: '', 'A.C': '1', B: '', BB: '2', BBB: '' };
    expect(sentEnvironment(settings, ours)).toEqual({
      LC_ALL: 'C',
      LC_TIME: 'en',
      'A.C': '1',
      BB: '2',
      EMPTY: '',
      EQUALS: 'a=b c',
    });
  });

  test('HostKeyAlias replaces name and port of the key', () => {
    expect(hopSettings(destination, answer({ port: ['2222'], hostkeyalias: ['lab'] }))).toMatchObject({
      keyName: 'lab',
      keyPort: 22,
    });
  });

  test.each([
    ['ask', 'refuse'],
    ['true', 'refuse'],
    ['accept-new', 'add'],
    ['false', 'off'],
    ['off', 'off'],
  ] as const)('StrictHostKeyChecking %s has the effect %s', (value, strict) => {
    expect(hopSettings(destination, answer({ stricthostkeychecking: [value] })).strict).toBe(strict);
  });

  test.each([
    ['h1', { name: 'h1', user: null, port: null }],
    ['ann@h1:2222', { name: 'h1', user: 'ann', port: 2222 }],
    ['[fe80::1]:22', { name: 'fe80::1', user: null, port: 22 }],
    ['a@b@[::1]', { name: '::1', user: 'a@b', port: null }],
  ])('parseJump reads %s', (text, expected) => {
    expect(parseJump(text)).toEqual(expected);
  });

  test('expandPath expands like ssh and returns null for unknown tokens', () => {
    const facts = { name: 'n1', hostName: 'n1.lab', keyName: 'n1.lab', port: 22, user: 'ann' };
    expect(expandPath('~/.ssh/%r@%h:%p-%n%%', facts)).toBe(join(homedir(), '.ssh/ann@n1.lab:22-n1%'));
    expect(expandPath('%d/k', facts)).toBe(join(homedir(), 'k'));
    expect(expandPath('%Z/k', facts)).toBeNull();
    expect(expandPath('${NCCLRUN_TEST_UNSET}/k', facts)).toBeNull();
    expect(hopSettings(destination, answer({ identityfile: ['/k/%n', '/k/%Z'] })).identityFiles).toEqual(['/k/n1']);
  });
});

describe('algorithms', () => {
  test('the types of known keys come first, and RSA keys sign with SHA-2', () => {
    const { serverHostKey } = offeredAlgorithms(hopSettings(destination, none), ours, ['ssh-rsa']);
    expect(serverHostKey).toEqual(expect.arrayContaining(['ssh-ed25519']));
    expect(Array.isArray(serverHostKey) ? serverHostKey.slice(0, 2) : []).toEqual(['rsa-sha2-512', 'rsa-sha2-256']);
    expect(serverHostKey).not.toContain('ssh-rsa');
  });

  test('our algorithms are ordered by cost, those of the user stay in order', () => {
    const settings = hopSettings(
      destination,
      answer({ kexalgorithms: ['sntrup761x25519-sha512,curve25519-sha256,ecdh-sha2-nistp256'] }),
    );
    expect(offeredAlgorithms(settings, ours, []).kex).toEqual(['ecdh-sha2-nistp256', 'curve25519-sha256']);
    expect(offeredAlgorithms(settings, { ...ours, kex: true }, []).kex).toEqual([
      'curve25519-sha256',
      'ecdh-sha2-nistp256',
    ]);
  });

  test('impossibleAlgorithms names a setting without a usable algorithm', () => {
    expect(impossibleAlgorithms(hopSettings(destination, none))).toBeNull();
    expect(impossibleAlgorithms(hopSettings(destination, answer({ kexalgorithms: ['sntrup761x25519-sha512'] })))).toBe(
      'KexAlgorithms',
    );
    expect(
      impossibleAlgorithms(hopSettings(destination, answer({ hostkeyalgorithms: ['sk-ssh-ed25519@openssh.com'] }))),
    ).toBe('HostKeyAlgorithms');
  });
});
