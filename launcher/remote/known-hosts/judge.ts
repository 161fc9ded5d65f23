/** Compares a host's key with the known_hosts files by ssh's rules. */
import { createHash } from 'node:crypto';
import { keyType } from './entry.ts';
import type { KnownHost } from './entry.ts';
import { lookupName, namesMatch } from './match.ts';

type KeyVerdict =
  | { readonly kind: 'known'; readonly by: KnownHost }
  | { readonly kind: 'revoked'; readonly by: KnownHost }
  /** Another key of the same type is known. */
  | { readonly kind: 'changed'; readonly old: readonly KnownHost[] }
  /** No key of this type is known; perhaps some of other types are. */
  | { readonly kind: 'unknown'; readonly others: readonly KnownHost[] };

/** What is known of one host, in the order of the files. */
export class HostRecords {
  /** The name by which it is looked up: "h1", "[h1]:2222". */
  readonly name: string;
  readonly #own: readonly KnownHost[];
  /** Entries without the port count where none has it: a match there is one, anything else is not held against the key. */
  readonly #portless: readonly KnownHost[];

  constructor(entries: readonly KnownHost[], host: string, port: number) {
    this.name = lookupName(host, port);
    const bare = host.toLowerCase();
    this.#own = entries.filter(({ names }) => namesMatch(names, this.name));
    this.#portless = this.name === bare ? [] : entries.filter(({ names }) => namesMatch(names, bare));
  }

  /** Types of the host's known keys: asking for these first avoids being shown a key that nobody knows. */
  get types(): readonly string[] {
    const own = this.#own.filter(isPlain);
    return [...new Set((own.length > 0 ? own : this.#portless.filter(isPlain)).map(({ type }) => type))];
  }

  /** Host certificates of these authorities are trusted. */
  get authorities(): readonly KnownHost[] {
    return this.#own.filter(({ marker }) => marker === 'cert-authority');
  }

  judge(key: Buffer): KeyVerdict {
    const own = judgeAmong(this.#own, key);
    if (own.kind !== 'unknown' || own.others.length > 0) return own;
    const portless = judgeAmong(this.#portless, key);
    return portless.kind === 'known' || portless.kind === 'revoked' ? portless : own;
  }
}

function isPlain({ marker }: KnownHost): boolean {
  return marker === null;
}

function judgeAmong(entries: readonly KnownHost[], key: Buffer): KeyVerdict {
  const revoked = entries.find((entry) => entry.marker === 'revoked' && entry.key.equals(key));
  if (revoked !== undefined) return { kind: 'revoked', by: revoked };
  const plain = entries.filter(isPlain);
  const known = plain.find((entry) => entry.key.equals(key));
  if (known !== undefined) return { kind: 'known', by: known };
  const type = keyType(key);
  const old = plain.filter((entry) => entry.type === type);
  return old.length > 0 ? { kind: 'changed', old } : { kind: 'unknown', others: plain };
}

/** As ssh prints it: "SHA256:" and 43 characters. */
export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}
