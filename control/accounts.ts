/** Users and groups of this system as /etc/passwd and /etc/group list them. Those of a directory service (LDAP, SSSD) have numbers alone. */
import { readFileSync } from 'node:fs';

/** The texts of /etc/passwd and /etc/group. */
export interface Accounts {
  readonly users: string;
  readonly groups: string;
}

/**
 * Whether `uid` is the only member of the group: the system lists it under the user's own name, as the user's primary group, with no other member and as
 * no other user's primary group. Such groups come with a umask of 002. A group that is not listed may have any members.
 */
export function isPrivateGroup(gid: number, uid: number, accounts: Accounts = systemAccounts()): boolean {
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
