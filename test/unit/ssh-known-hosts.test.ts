/** known_hosts, read and judged as ssh does; where ssh-keygen is installed it is asked for its opinion. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keyType, parseKnownHosts } from '../../launcher/remote/known-hosts/entry.ts';
import { addKnownHost, hashedName } from '../../launcher/remote/known-hosts/files.ts';
import { fingerprint, HostRecords } from '../../launcher/remote/known-hosts/judge.ts';
import { lookupName, namesMatch } from '../../launcher/remote/known-hosts/match.ts';
import { matchesPattern } from '../../launcher/remote/shell/pattern.ts';
import { findProgram } from '../rig/capability.ts';
import { seededRandom } from '../rig/random.ts';

/** A public key of this type that holds this text. */
function key(text: string, type = 'ssh-ed25519'): Buffer {
  return Buffer.concat([type, text].map((part) => Buffer.concat([length(part), Buffer.from(part)])));
}
function length(part: string): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Buffer.byteLength(part));
  return bytes;
}
function line(names: string, of: Buffer): string {
  return `${names} ${keyType(of) ?? ''} ${of.toString('base64')}`;
}
function keygen(...words: readonly string[]): string {
  return spawnSync('ssh-keygen', words, { encoding: 'utf8' }).stdout;
}
function records(lines: readonly string[], host: string, port = 22): HostRecords {
  return new HostRecords(parseKnownHosts(lines.join('\n'), '/k').entries, host, port);
}
const [a, b, rsa] = [key('a'), key('b'), key('r', 'ssh-rsa')];

test.each<[string, number[], string | null]>([
  ['no length', [0, 0, 0], null],
  ['a length of 0', [0, 0, 0, 0], null],
  ['a length of 0 and more', [0, 0, 0, 0, 65], null],
  ['a type and nothing else', [0, 0, 0, 1, 65], 'A'],
  ['a type and a key', [0, 0, 0, 2, 65, 66, 67], 'AB'],
  ['less than its length says', [0, 0, 0, 2, 65], null],
])('the type of a key with %s is read', (_, bytes, type) => {
  expect(keyType(Buffer.from(bytes))).toBe(type);
});

describe('a known_hosts line', () => {
  test('an empty line or comment gives no entry', () => {
    expect(parseKnownHosts('\n  # h1 ssh-rsa AAAA\n\t\n', '/k')).toEqual({ entries: [], unreadable: [] });
  });

  test('a line has names, type, key and optionally a marker and a comment', () => {
    const text = `# first\r\n${line('h1,h2', a)} a comment\r\n@revoked\t${line('*', b)}\n`;
    expect(parseKnownHosts(text, '/k').entries).toEqual([
      {
        marker: null,
        names: { form: 'patterns', patterns: ['h1', 'h2'] },
        type: 'ssh-ed25519',
        key: a,
        file: '/k',
        line: 2,
      },
      {
        marker: 'revoked',
        names: { form: 'patterns', patterns: ['*'] },
        type: 'ssh-ed25519',
        key: b,
        file: '/k',
        line: 3,
      },
    ]);
  });

  test.each([
    ['h1', /too few words/],
    ['h1 ssh-rsa', /too few words/],
    ['h1 ssh-rsa !!!!', /no base64/],
    [`h1 ssh-rsa ${a.toString('base64')}`, /no ssh-rsa/],
    ['@unheard h1 ssh-rsa AAAA', /@unheard/],
    [`|2|AAAA|AAAA ssh-ed25519 ${a.toString('base64')}`, /hashed name/],
    ['h1 1024 35 1234567', /no base64|no 1024/],
  ])('the line %j is skipped with a reason', (text, message) => {
    const { entries, unreadable } = parseKnownHosts(`\n${text}`, '/k');
    expect(entries).toEqual([]);
    expect(unreadable).toEqual([{ file: '/k', line: 2, message: expect.stringMatching(message) }]);
  });

  test('a line of random pieces never throws', () => {
    const next = seededRandom(1);
    const pieces = [
      'h1',
      '@revoked',
      '@',
      '|1|',
      '|',
      ' ',
      '\t',
      ',',
      '!',
      '*',
      '#',
      'ssh-ed25519',
      a.toString('base64'),
      '==',
      '\0',
      'ü',
      '\n',
      '\r',
    ];
    for (let round = 0; round < 5000; round += 1) {
      const text = Array.from({ length: next(12) }, () =>
        next(4) === 0 ? String.fromCodePoint(next(0x1_00)) : pieces[next(pieces.length)],
      ).join('');
      const { entries, unreadable } = parseKnownHosts(text, '/k');
      expect(entries.length + unreadable.length).toBeLessThanOrEqual(text.split('\n').length);
      new HostRecords(entries, 'h1', 22).judge(Buffer.from(text));
    }
  });
});

describe('host name patterns', () => {
  test('the lookup name contains the port unless it is 22', () => {
    expect([lookupName('H1', 22), lookupName('h1', 2222), lookupName('FE80::1', 22)]).toEqual([
      'h1',
      '[h1]:2222',
      'fe80::1',
    ]);
  });

  test.each([
    ['*', '', true],
    ['h?', 'h1', true],
    ['h?', 'h', false],
    ['h*1', 'h11', true],
    ['h*1*', 'h2', false],
    ['[h1]:2222', '[h1]:2222', true],
    ['[*]:2222', '[h1]:2222', true],
    ['[h1]:2222', 'h', false],
    ['a.b', 'axb', false],
    ['***a', 'bbba', true],
  ])('the pattern %j against %j gives %s', (pattern, text, expected) => {
    expect(matchesPattern(pattern, text)).toBe(expected);
  });

  test('a pattern with many stars takes no exponential time', () => {
    expect(matchesPattern(`${'*a'.repeat(500)}b`, 'a'.repeat(2000))).toBe(false);
  });

  test('random patterns match like a regular expression', () => {
    const next = seededRandom(2);
    const of = (letters: string) => Array.from({ length: next(8) }, () => letters[next(letters.length)]).join('');
    for (let round = 0; round < 5000; round += 1) {
      const [pattern, text] = [of('ab*?'), of('ab')];
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
      expect(`${pattern} ${text} ${matchesPattern(pattern, text)}`).toBe(`${pattern} ${text} ${expression.test(text)}`);
    }
  });

  test('a negated pattern excludes the line at any position', () => {
    const names = { form: 'patterns', patterns: ['*.net', '!bad.net'] } as const;
    expect([namesMatch(names, 'good.net'), namesMatch(names, 'bad.net'), namesMatch(names, 'other')]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('a hashed name matches its host and port', () => {
    const entry = line(hashedName('[h1]:2222', Buffer.from('salt')), a);
    expect(records([entry], 'h1', 2222).judge(a).kind).toBe('known');
    expect(records([entry], 'h1').judge(a).kind).toBe('unknown');
  });
});

test('a key that is added makes the directory of its file, and none above it', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-added-'));
  const file = join(directory, '.ssh/known_hosts');
  addKnownHost(file, 'h1', a, false);
  expect(readFileSync(file, 'utf8')).toBe(`${line('h1', a)}\n`);
  expect(() => addKnownHost(join(directory, 'no/such/known_hosts'), 'h1', a, false)).toThrow('ENOENT');
  expect(existsSync(join(directory, 'no'))).toBe(false);
  rmSync(directory, { recursive: true });
});

describe('the judgement of a host key', () => {
  test('a key is known if any line contains it', () => {
    expect(records([line('h1', b), line('h*', a)], 'h1').judge(a)).toMatchObject({ kind: 'known', by: { line: 2 } });
  });
  test('a key is changed if only other keys of its type are known', () => {
    expect(records([line('h1', rsa), line('h1', b)], 'h1').judge(a)).toMatchObject({
      kind: 'changed',
      old: [{ line: 2 }],
    });
  });
  test('a key is unknown if no key of its type is known', () => {
    expect(records([line('h1', rsa), line('h2', a)], 'h1').judge(a)).toMatchObject({
      kind: 'unknown',
      others: [{ line: 1 }],
    });
  });
  test('a key is revoked even if it is also known', () => {
    expect(records([line('h1', a), `@revoked ${line('*', a)}`], 'h1').judge(a)).toMatchObject({
      kind: 'revoked',
      by: { line: 2 },
    });
  });
  test('a certificate authority does not make a key known', () => {
    const known = records([`@cert-authority ${line('h1', a)}`], 'h1');
    expect(known.judge(a).kind).toBe('unknown');
    expect(known.authorities).toMatchObject([{ line: 1 }]);
  });
  test('a key on another port is known by the plain name, which does not make it changed', () => {
    expect(records([line('h1', a)], 'h1', 2222).judge(a).kind).toBe('known');
    expect(records([line('h1', b)], 'h1', 2222).judge(a).kind).toBe('unknown');
    expect(records([line('h1', a), line('[h1]:2222', b)], 'h1', 2222).judge(a).kind).toBe('changed');
    expect(records([`@revoked ${line('h1', a)}`], 'h1', 2222).judge(a).kind).toBe('revoked');
  });
  test('the requested key types are those of the known keys', () => {
    expect(
      records([line('h1', rsa), `@revoked ${line('h1', a)}`, line('h1', key('e', 'ecdsa-sha2-nistp256'))], 'h1').types,
    ).toEqual(['ssh-rsa', 'ecdsa-sha2-nistp256']);
    expect(records([line('[h1]:23', rsa), line('h1', a)], 'h1', 23).types).toEqual(['ssh-rsa']);
    expect(records([line('h1', a), line('h2', rsa)], 'h1', 23).types).toEqual(['ssh-ed25519']);
  });
});

describe.skipIf(findProgram('ssh-keygen') === null)('comparison with ssh-keygen', () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ncclrun-known-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test('ssh-keygen gives the same fingerprints and finds the same lines', () => {
    const file = join(directory, 'id');
    keygen('-q', '-t', 'ed25519', '-N', '', '-f', file);
    const [, encoded = ''] = keygen('-y', '-f', file).split(' ');
    const own = Buffer.from(encoded, 'base64');
    expect(keygen('-lf', file)).toContain(fingerprint(own));

    const next = seededRandom(3);
    const names = ['h1', 'H2', 'h*', '!h1', '?1', '[h1]:22', '[h1]:2222', '*', '!*2', 'h1.net', 'fe80::1', '*:*'];
    const pick = () => names[next(names.length)] ?? '';
    const lines = Array.from({ length: 200 }, () => {
      const list = Array.from({ length: 1 + next(3) }, pick).join(',');
      return line(
        next(3) === 0 ? hashedName(pick().toLowerCase(), Buffer.from(String(next(99)).padEnd(20))) : list,
        own,
      );
    });
    const known = join(directory, 'known');
    writeFileSync(known, `${lines.join('\n')}\n`);
    const { entries } = parseKnownHosts(lines.join('\n'), known);
    expect(entries).toHaveLength(lines.length);
    for (const host of ['h1', 'h2', 'h1.net', 'fe80::1', '[h1]:2222', 'x']) {
      const theirs = [...keygen('-F', host, '-f', known).matchAll(/found: line (\d+)/g)].map(([, number]) =>
        Number(number),
      );
      const ours = entries.filter((entry) => namesMatch(entry.names, host)).map((entry) => entry.line);
      expect({ host, lines: ours }).toEqual({ host, lines: theirs });
    }
  });
});
