/** Users and groups of this system as /etc/passwd and /etc/group list them. Those of a directory service (LDAP, SSSD) have numbers alone. */
import { readFileSync } from 'node:fs';

/** The texts of /etc/passwd and /etc/group. */
interface Accounts {
  readonly users: string;
  readonly groups: string;
}

/**
 * Whether nobody but `uid` and root is in the group: it is the private group of one of them. Such groups come with a umask of 002. The same rule stands
 * in launcher/remote/staging/trust.ts for a host's shell and in native/base/trusted_path.cc.
 */
export function isPrivateGroup(gid: number, uid: number, accounts: Accounts = systemAccounts()): boolean {
  return isGroupOf(uid, gid, accounts) || (uid !== 0 && isGroupOf(0, gid, accounts));
}

/**
 * The system lists the group under the user's own name, as the user's primary group, with no other member and as no other user's primary group. A group
 * that is not listed may have any members.
 */
function isGroupOf(uid: number, gid: number, accounts: Accounts): boolean {
  const primary = entriesOf(accounts.users).filter(([, , , group]) => group === String(gid));
  const groups = entriesOf(accounts.groups).filter(([, , number]) => number === String(gid));
  const [[user, , number] = []] = primary;
  const [[group, , , members = ''] = []] = groups;
  if (user === undefined || primary.length !== 1 || groups.length !== 1) return false;
  return number === String(uid) && group === user && (members === '' || members === user);
}

/** `uid 1001 (mallory)` */
export function userText(uid: number): string {
  return numberAndName('uid', uid, systemAccounts().users);
}

/** `group 100 (users)` */
export function groupText(gid: number): string {
  return numberAndName('group', gid, systemAccounts().groups);
}

function numberAndName(what: string, number: number, list: string): string {
  const [name] = entriesOf(list).find(([, , listed]) => listed === String(number)) ?? [];
  return name === undefined ? `${what} ${number}` : `${what} ${number} (${name})`;
}

/** Both files have a line per entry, fields separated by colons: name, password, number, then of a user the primary group, of a group the members. */
function entriesOf(list: string): string[][] {
  return list.split('\n').map((line) => line.split(':'));
}

function systemAccounts(): Accounts {
  return { users: readOrEmpty('/etc/passwd'), groups: readOrEmpty('/etc/group') };
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // nobody is listed then
  }
}
