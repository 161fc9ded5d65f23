/** Who can change what a path leads to: real files, directories and links, also of other users where this is root. */
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isPrivateGroup } from '../../control/accounts.ts';
import { ownUser } from '../../control/own-user.ts';
import { readTrusted } from '../../control/trusted-file.ts';
import { untrustedPath } from '../../control/trusted-path.ts';
import { describeIf } from '../rig/capability.ts';

const STRANGER = 12_345;
const USER = 12_346;
const me = ownUser();
const notRoot = me === 0 ? null : 'to give files to other users needs root';
const root = mkdtempSync(join(tmpdir(), 'ncclrun-trusted-'));
chmodSync(root, 0o755);
afterAll(() => rmSync(root, { recursive: true }));

let directory = '';
let count = 0;
beforeEach(() => {
  count += 1;
  directory = made(`d${count}`, 0o755);
});

function made(name: string, mode: number, owner = me): string {
  const path = join(root, name);
  mkdirSync(path);
  chmodSync(path, mode);
  if (owner !== me) chownSync(path, owner, owner);
  return path;
}

function file(path: string, mode = 0o644, owner = me): string {
  writeFileSync(path, 'content');
  chmodSync(path, mode);
  if (owner !== me) chownSync(path, owner, owner);
  return path;
}

describe('modes of files and directories', () => {
  it('a file and directory that only the user may write to are trusted', () => {
    expect(untrustedPath(file(join(directory, 'f')), me)).toBeNull();
    expect(untrustedPath(directory, me)).toBeNull();
    expect(untrustedPath('/', me)).toBeNull();
  });

  it('a file that others may write to is not trusted', () => {
    expect(untrustedPath(file(join(directory, 'f'), 0o646), me)).toBe('every user may write to it (mode 0646)');
  });

  it('a file in a directory that others may write to is not trusted, even if it is sticky', () => {
    const path = file(join(directory, 'f'));
    chmodSync(directory, 0o777);
    expect(untrustedPath(path, me)).toBe(`every user may write to the directory ${directory} (mode 0777)`);
    chmodSync(directory, 0o1777);
    expect(untrustedPath(path, me)).toBe(`every user may write to the directory ${directory} (mode 1777)`);
    expect(untrustedPath(directory, me)).toBe('every user may write to it (mode 1777)');
  });

  it('a higher directory may be sticky but not writable otherwise', () => {
    const inner = join(directory, 'inner');
    mkdirSync(inner);
    const path = file(join(inner, 'f'));
    chmodSync(directory, 0o1777);
    expect(untrustedPath(path, me)).toBeNull();
    expect(untrustedPath(inner, me)).toBeNull();
    chmodSync(directory, 0o777);
    expect(untrustedPath(path, me)).toBe(`every user may write to the directory ${directory} (mode 0777)`);
  });

  it('a missing path is judged by its directory', () => {
    expect(untrustedPath(join(directory, 'none'), me)).toBeNull();
    expect(untrustedPath(join(directory, 'none/below'), me)).toBeNull();
    chmodSync(directory, 0o1777);
    const why = `every user may write to the directory ${directory} (mode 1777)`;
    expect(untrustedPath(join(directory, 'none'), me)).toBe(why);
    expect(untrustedPath(join(directory, 'none/below'), me)).toBe(why);
  });
});

describe('symbolic links', () => {
  it('the target of a symbolic link and its directories count', () => {
    const open = made(`open${count}`, 0o777);
    file(join(open, 'f'));
    symlinkSync(open, join(directory, 'absolute'));
    symlinkSync(`../open${count}/f`, join(directory, 'relative'));
    const why = `every user may write to the directory ${open} (mode 0777)`;
    expect(untrustedPath(join(directory, 'absolute/f'), me)).toBe(why);
    expect(untrustedPath(join(directory, 'relative'), me)).toBe(why);
    chmodSync(open, 0o755);
    expect(untrustedPath(join(directory, 'absolute/f'), me)).toBeNull();
    expect(untrustedPath(join(directory, 'relative'), me)).toBeNull();
  });

  it('a symbolic link in a sticky directory is not followed', () => {
    const target = file(join(directory, 'f'));
    const open = made(`sticky${count}`, 0o1777);
    symlinkSync(target, join(open, 'link'));
    expect(untrustedPath(join(open, 'link'), me)).toBe(`every user may write to the directory ${open} (mode 1777)`);
  });

  it('a cycle of symbolic links ends the walk', () => {
    symlinkSync('b', join(directory, 'a'));
    symlinkSync('a', join(directory, 'b'));
    expect(untrustedPath(join(directory, 'a'), me)).toBe('it has more than 40 symbolic links in its path');
  });
});

describeIf(notRoot, 'owners of files and directories', () => {
  it('a file of the user or of root is trusted', () => {
    const path = file(join(directory, 'f'));
    expect(untrustedPath(path, USER)).toBeNull();
    chownSync(path, USER, USER);
    expect(untrustedPath(path, USER)).toBeNull();
    expect(untrustedPath(path, STRANGER)).toBe(`it belongs to uid ${USER}, not to you`);
    expect(untrustedPath(path, 0)).toBe(`it belongs to uid ${USER}, not to you`);
  });

  it('the owner of every parent directory counts', () => {
    const theirs = made(`theirs${count}`, 0o755, STRANGER);
    const inner = join(theirs, 'inner');
    mkdirSync(inner);
    const why = `the directory ${theirs} belongs to uid ${STRANGER}, not to you`;
    expect(untrustedPath(file(join(theirs, 'f')), me)).toBe(why);
    expect(untrustedPath(file(join(inner, 'f')), me)).toBe(why);
  });

  it('the owner of a sticky directory counts', () => {
    const theirs = made(`sticky${count}`, 0o1755, STRANGER);
    expect(untrustedPath(file(join(theirs, 'f')), me)).toContain(`belongs to uid ${STRANGER}`);
  });

  it('the owner of a symbolic link counts', () => {
    file(join(directory, 'f'));
    symlinkSync('f', join(directory, 'link'));
    lchownSync(join(directory, 'link'), STRANGER, STRANGER);
    const why = `the symbolic link ${join(directory, 'link')} belongs to uid ${STRANGER}, not to you`;
    expect(untrustedPath(join(directory, 'link'), me)).toBe(why);
  });

  it("the reason contains the owner's name if the system lists it", () => {
    expect(untrustedPath(file(join(directory, 'f'), 0o644, 1), me)).toMatch(
      /^it belongs to uid 1 \(\w+\), not to you$/u,
    );
  });
});

describe('a group that may write', () => {
  const users = 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n';
  const groups = 'root:x:0:\nusers:x:100:\nann:x:1000:\n';

  it('a private group of the user counts as private', () => {
    expect(isPrivateGroup(1000, 1000, { users, groups })).toBe(true);
    expect(isPrivateGroup(1000, 1000, { users, groups: 'ann:x:1000:ann\n' })).toBe(true);
  });

  it('the group root counts as private if only root is in it', () => {
    expect(isPrivateGroup(0, 1000, { users, groups })).toBe(true);
    expect(isPrivateGroup(0, 1000, { users: `${users}halt:x:7:0::/:/bin/sh\n`, groups })).toBe(false);
  });

  it.each<[string, number, number, string, string]>([
    ['is another user’s', 1000, 1001, users, groups],
    ['has another name', 100, 1001, users, groups],
    ['has another member', 1000, 1000, users, 'ann:x:1000:ann,bob\n'],
    ['is another user’s primary group too', 1000, 1000, `${users}eve:x:1002:1000::/home/eve:/bin/sh\n`, groups],
    ['has two entries', 1000, 1000, users, `${groups}more:x:1000:bob\n`],
    ['is not listed', 1000, 1000, users, ''],
    ['is of a user who is not listed', 1000, 1000, '', groups],
  ])('a group is not private if it %s', (_, gid, uid, listedUsers, listedGroups) => {
    expect(isPrivateGroup(gid, uid, { users: listedUsers, groups: listedGroups })).toBe(false);
  });
});

describe('a trusted file', () => {
  it('readTrusted returns the content, or that the file is missing', () => {
    expect(readTrusted(file(join(directory, 'f')), me, 7)).toEqual({ kind: 'content', content: 'content' });
    expect(readTrusted(join(directory, 'none'), me, 7)).toEqual({ kind: 'missing' });
    expect(readTrusted(join(directory, 'f/none'), me, 7)).toEqual({ kind: 'missing' });
    symlinkSync('none', join(directory, 'link'));
    expect(readTrusted(join(directory, 'link'), me, 7)).toEqual({ kind: 'missing' });
  });

  it('readTrusted rejects files that are too long, not regular or not trusted', () => {
    const path = file(join(directory, 'f'));
    expect(readTrusted(path, me, 6)).toEqual({ kind: 'unfit', reason: 'it has 7 bytes; at most 6 are read' });
    expect(readTrusted(directory, me, 6)).toEqual({ kind: 'unfit', reason: 'it is not a regular file' });
    chmodSync(path, 0o666);
    expect(readTrusted(path, me, 7)).toEqual({ kind: 'untrusted', reason: 'every user may write to it (mode 0666)' });
  });
});
