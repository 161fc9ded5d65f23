/** The user's keys: each file is read once per job, however many hosts it opens. What cannot be used is left out with a reason. */
import type { AnyAuthMethod, ParsedKey } from 'ssh2';
import { listAgentKeys } from './agent-keys.ts';
import type { AgentKey } from './agent-keys.ts';
import { loadParts } from './late-library.ts';
import type { HopSettings } from './settings.ts';

export type SshIdentity =
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
  readonly #files = new Map<string, Promise<SshIdentity>>();
  readonly #agents = new Map<string, Promise<readonly AgentKey[]>>();

  file(path: string): Promise<SshIdentity> {
    return remember(this.#files, path, async () => (await loadParts()).readIdentity(path));
  }

  agentKeys(socketPath: string | null): Promise<readonly AgentKey[]> {
    return socketPath === null
      ? Promise.resolve([])
      : remember(this.#agents, socketPath, () => listAgentKeys(socketPath));
  }

  /** In ssh's order: what the agent holds of the identity files, what else it holds, the files that it does not hold. */
  async offers({ identityFiles, identitiesOnly, agent }: HopSettings): Promise<Offers> {
    const [{ agentOffer, fileOffer }, identities, agentKeys] = await Promise.all([
      loadParts(),
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

function publicOf(identity: SshIdentity): Buffer | null {
  if (identity.kind === 'key') return identity.key.getPublicSSH();
  return identity.kind === 'public' ? identity.publicKey : null;
}

function remember<Value>(known: Map<string, Promise<Value>>, key: string, make: () => Promise<Value>): Promise<Value> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = make();
  known.set(key, made);
  return made;
}
