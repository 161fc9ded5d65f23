/** What to do about a login that a host denies. */

/** Methods that a person has to answer. */
const asking = new Set(['password', 'keyboard-interactive']);

/** `login`: what ssh is called with. `methods`: what the host would still take. `user`: null where it is not known. */
export function loginRemedy(login: string, methods: readonly string[], user: string | null): string {
  const asks = methods.filter((method) => asking.has(method));
  if (asks.length > 0 && !methods.includes('publickey')) {
    const how = 'log in once by hand with ControlMaster, ControlPath and ControlPersist set for it in ~/.ssh/config';
    return `${login} takes no key alone, and wants ${asks.join(' or ')}, which ncclrun never answers; ${how}: ncclrun uses that connection`;
  }
  const root = user === 'root' ? '; its sshd may refuse root (PermitRootLogin): -H user@host names another user' : '';
  return `this must work without a password: ssh -o BatchMode=yes ${login} true (ssh-copy-id ${login}, or ssh-add)${root}`;
}

/** For a host that has enough of wrong keys, before the right one. */
export function manyKeysRemedy(name: string): string {
  const lines = `Host ${name}, IdentityFile KEY, IdentitiesOnly yes`;
  return `the agent offers more keys than the host lets one try; name the right one in ~/.ssh/config: ${lines}`;
}
