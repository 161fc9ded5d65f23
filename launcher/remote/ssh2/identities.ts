/** The user's keys: each file is read once per job, however many hosts it opens. What cannot be used is left out with a reason. */
import { readFile, stat } from 'node:fs/promises';
import type { AnyAuthMethod, IdentityCallback, ParsedKey } from 'ssh2';
import { fingerprint } from '../known-hosts/judge.ts';
import { listAgentKeys } from './agent-keys.ts';
import type { AgentKey } from './agent-keys.ts';
import { OpenSSHAgent, parseKey } from './library.ts';
import type { HopSettings } from './settings.ts';

export type Identity =
  | { readonly kind: 'key'; readonly file: string; readonly key: ParsedKey }
  /** The agent holds it, or perhaps: `publicKey` is all we can read of it. */
  | { readonly kind: 'public'; readonly file: string; readonly publicKey: Buffer; readonly problem: string }
  | { readonly kind: 'unusable'; readonly file: string; readonly problem: string }
  | { readonly kind: 'missing'; readonly file: string };

/** One attempt at authentication; `name` is for people. */
export interface Offer {
  readonly name: string;
  method(user: string): AnyAuthMethod;
}

export interface Offers {
  readonly offers: readonly Offer[];
  /** "~/.ssh/id_rsa is encrypted, and no agent holds it" */
  readonly leftOut: readonly string[];
}

export class Identities {
  readonly #files = new Map<string, Promise<Identity>>();
  readonly #agents = new Map<string, Promise<readonly AgentKey[]>>();

  file(path: string): Promise<Identity> {
    return remember(this.#files, path, () => readIdentity(path));
  }

  agentKeys(socketPath: string | null): Promise<readonly AgentKey[]> {
    return socketPath === null
      ? Promise.resolve([])
      : remember(this.#agents, socketPath, () => listAgentKeys(socketPath));
  }

  /** In ssh's order: what the agent holds of the identity files, what else it holds, the files that it does not hold. */
  async offers({ identityFiles, identitiesOnly, agent }: HopSettings): Promise<Offers> {
    const [identities, agentKeys] = await Promise.all([
      Promise.all(identityFiles.map((file) => this.file(file))),
      this.agentKeys(agent),
    ]);
    const held = (publicKey: Buffer) => agentKeys.find(({ key }) => key.equals(publicKey));
    const named = identities.flatMap((identity) => held(publicOf(identity) ?? Buffer.alloc(0)) ?? []);
    const others = identitiesOnly ? [] : agentKeys.filter((key) => !named.includes(key));
    const fromAgent = [...new Set([...named, ...others])].flatMap((key) => agentOffer(agent ?? '', key) ?? []);
    const offers: Offer[] = [...fromAgent];
    const leftOut: string[] = [];
    for (const identity of identities) {
      if (identity.kind === 'missing' || held(publicOf(identity) ?? Buffer.alloc(0)) !== undefined) continue;
      if (identity.kind === 'key') offers.push(fileOffer(identity.file, identity.key));
      else leftOut.push(`${identity.file} ${identity.problem}`);
    }
    return { offers, leftOut };
  }
}

function publicOf(identity: Identity): Buffer | null {
  if (identity.kind === 'key') return identity.key.getPublicSSH();
  return identity.kind === 'public' ? identity.publicKey : null;
}

async function readIdentity(file: string): Promise<Identity> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const publicKey = await readPublic(file);
    // ssh takes a public key alone, too: it names one of the agent's.
    if (publicKey !== null)
      return { kind: 'public', file, publicKey, problem: 'has only its public half here, and no agent holds it' };
    const gone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return gone ? { kind: 'missing', file } : { kind: 'unusable', file, problem: `cannot be read: ${String(error)}` };
  }
  const { mode, uid } = await stat(file);
  const open = (mode & 0o077) !== 0 && uid === process.getuid?.();
  const key = parseKey(text);
  const usable = !open && !(key instanceof Error) && key.isPrivateKey();
  if (usable) return { kind: 'key', file, key };
  const problem = open
    ? `may be read by others (mode ${(mode & 0o777).toString(8)}; chmod 600 mends that)`
    : key instanceof Error && /encrypted|passphrase/i.test(key.message)
      ? 'is encrypted, and no agent holds it (ssh-add)'
      : `is no private key that ssh2 can use`;
  const publicKey = key instanceof Error || open ? await readPublic(file) : key.getPublicSSH();
  return publicKey === null ? { kind: 'unusable', file, problem } : { kind: 'public', file, publicKey, problem };
}

/** The second word of FILE.pub. */
async function readPublic(file: string): Promise<Buffer | null> {
  const text = await readFile(`${file}.pub`, 'utf8').catch(() => '');
  const [, encoded] = text.trim().split(/\s+/);
  return encoded === undefined ? null : Buffer.from(encoded, 'base64');
}

function fileOffer(file: string, key: ParsedKey): Offer {
  return { name: file, method: (username) => ({ type: 'publickey', username, key }) };
}

/** Null for what ssh2 cannot sign with: certificates, hardware keys. */
function agentOffer(socketPath: string, { key: blob }: AgentKey): Offer | null {
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

function remember<Value>(known: Map<string, Promise<Value>>, key: string, make: () => Promise<Value>): Promise<Value> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = make();
  known.set(key, made);
  return made;
}
