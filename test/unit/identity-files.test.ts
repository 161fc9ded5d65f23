/** What becomes of the user's identity files: keys, public halves, and why the others cannot be used. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { readIdentity } from '../../launcher/remote/ssh2/identity-files.ts';
import { ownKey } from '../rig/own-sshd.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-identity-'));
afterAll(() => rmSync(directory, { recursive: true }));
const key = ownKey();
const encrypted = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({
  type: 'pkcs1',
  format: 'pem',
  cipher: 'aes-128-cbc',
  passphrase: 'secret',
});

let number = 0;
/** A file with this text, and beside it perhaps FILE.pub. */
function file(text: string | null, pub: string | null, mode = 0o600): string {
  const path = join(directory, String(number++));
  if (text !== null) writeFileSync(path, text, { mode });
  if (pub !== null) writeFileSync(`${path}.pub`, pub);
  return path;
}

const open = (mode: string) => `may be read by others (mode ${mode}; chmod 600 mends that)`;
const half = 'has only its public half here, and no agent holds it';
const locked = 'is encrypted, and no agent holds it (ssh-add)';

describe('an identity file', () => {
  test('a key that only its owner reads is used', () => {
    const path = file(key.text, null);
    const identity = readIdentity(path);
    expect(identity).toMatchObject({ kind: 'key', file: path });
    expect(identity.kind === 'key' && identity.key.getPublicSSH().equals(key.blob)).toBe(true);
  });

  test.each<[string, string | null, string | null, number, object]>([
    ['not there', null, null, 0o600, { kind: 'missing' }],
    ['only a public key', null, key.line, 0o600, { kind: 'public', problem: half }],
    ['for its group, too', key.text, null, 0o640, { kind: 'unusable', problem: open('640') }],
    ['for others, too', key.text, key.line, 0o601, { kind: 'public', problem: open('601') }],
    ['encrypted', String(encrypted), null, 0o600, { kind: 'unusable', problem: locked }],
    ['encrypted, with its public half', String(encrypted), key.line, 0o600, { kind: 'public', problem: locked }],
    ['no key', 'nonsense', null, 0o600, { kind: 'unusable', problem: 'is no private key that ssh2 can use' }],
    ['a public key', key.line, null, 0o600, { kind: 'public', problem: half }],
    ['a public key for all', key.line, null, 0o644, { kind: 'public', problem: half }],
    [
      'a key of PuTTY',
      'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n',
      null,
      0o600,
      {
        kind: 'unusable',
        problem: 'is a key of PuTTY, which ssh cannot read: puttygen FILE -O private-openssh -o NEW converts it',
      },
    ],
    ['beside one word', null, 'word', 0o600, { kind: 'missing' }],
  ])('that is %s', (_, text, pub, mode, expected) => {
    const path = file(text, pub, mode);
    const publicKey = 'kind' in expected && expected.kind === 'public' ? { publicKey: key.blob } : {};
    expect(readIdentity(path)).toEqual({ file: path, ...expected, ...publicKey });
  });

  test('that is a directory cannot be read', () => {
    const path = join(directory, 'folder');
    mkdirSync(path);
    expect(readIdentity(path)).toMatchObject({
      kind: 'unusable',
      problem: 'cannot be read: it is a directory',
    });
  });

  test('that another user has opened to others is used', () => {
    const path = file(key.text, null, 0o644);
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(54_321);
    expect(readIdentity(path).kind).toBe('key');
    getuid.mockRestore();
  });
});
