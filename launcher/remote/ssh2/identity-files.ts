/** One identity file, and what is offered to a host of files and of the agent's keys. Needs the package ssh2. */
import { readFileSync, statSync } from 'node:fs';
import type { IdentityCallback, ParsedKey } from 'ssh2';
import { messageOf } from '../../../control/message-of.ts';
import { fingerprint } from '../known-hosts/judge.ts';
import type { AgentKey } from './agent-keys.ts';
import type { Offer, SshIdentity } from './identities.ts';
import { OpenSSHAgent, parseKey } from './library.ts';

const publicAlone = 'has only its public half here, and no agent holds it';

/** Read at once: a thread and promises for it would cost a start 4 ms. */
export function readIdentity(file: string): SshIdentity {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const publicKey = readPublic(file);
    // ssh takes a public key alone, too: it names one of the agent's.
    if (publicKey !== null) return { kind: 'public', file, publicKey, problem: publicAlone };
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ENOENT') return { kind: 'missing', file };
    const why = code === 'EISDIR' ? 'it is a directory' : messageOf(error);
    return { kind: 'unusable', file, problem: `cannot be read: ${why}` };
  }
  const { mode, uid } = statSync(file);
  const open = (mode & 0o077) !== 0 && uid === process.getuid?.();
  const key = parseKey(text);
  if (!(key instanceof Error) && !key.isPrivateKey())
    return { kind: 'public', file, publicKey: key.getPublicSSH(), problem: publicAlone };
  const usable = !open && !(key instanceof Error) && key.isPrivateKey();
  if (usable) return { kind: 'key', file, key };
  const problem = open
    ? `may be read by others (mode ${(mode & 0o777).toString(8)}; chmod 600 mends that)`
    : key instanceof Error && /encrypted|passphrase/i.test(key.message)
      ? 'is encrypted, and no agent holds it (ssh-add)'
      : text.startsWith('PuTTY-')
        ? 'is a key of PuTTY, which ssh cannot read: puttygen FILE -O private-openssh -o NEW converts it'
        : 'is no private key that ssh2 can use';
  const publicKey = key instanceof Error || open ? readPublic(file) : key.getPublicSSH();
  return publicKey === null ? { kind: 'unusable', file, problem } : { kind: 'public', file, publicKey, problem };
}

/** The second word of FILE.pub. */
function readPublic(file: string): Buffer | null {
  let text: string;
  try {
    text = readFileSync(`${file}.pub`, 'utf8');
  } catch {
    return null;
  }
  const [, encoded] = text.trim().split(/\s+/);
  return encoded === undefined ? null : Buffer.from(encoded, 'base64');
}

export function fileOffer(file: string, key: ParsedKey): Offer {
  return { name: file, method: (username) => ({ type: 'publickey', username, key }) };
}

/** Null for what ssh2 cannot sign with: certificates, hardware keys. */
export function agentOffer(socketPath: string, { key: blob }: AgentKey): Offer | null {
  const key = parseKey(blob);
  if (key instanceof Error) return null;
  const name = `the agent's ${fingerprint(blob)}`;
  return { name, method: (username) => ({ type: 'agent', username, agent: new OneKey(socketPath, key) }) };
}

/** The agent, as if it held one key. */
class OneKey extends OpenSSHAgent {
  readonly #key: ParsedKey;

  constructor(socketPath: string, key: ParsedKey) {
    super(socketPath);
    this.#key = key;
  }

  override getIdentities(callback: IdentityCallback<ParsedKey>): void {
    callback(undefined, [this.#key]);
  }
}
