/** Lines of a known_hosts file: which keys belong to which names (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */

type Marker = 'revoked' | 'cert-authority';

/** Whose key it is: patterns, as written; or one name, hashed. */
export type HostNames =
  | { readonly form: 'patterns'; readonly patterns: readonly string[] }
  | { readonly form: 'hashed'; readonly salt: Buffer; readonly hash: Buffer };

export interface KnownHost {
  readonly marker: Marker | null;
  readonly names: HostNames;
  /** "ssh-ed25519" … */
  readonly type: string;
  /** The public key as it travels (RFC 4253, 6.6), which begins with its type. */
  readonly key: Buffer;
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/** A line that we cannot parse; we skip it, as ssh does. */
interface UnreadableLine {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

interface KnownHosts {
  readonly entries: readonly KnownHost[];
  readonly unreadable: readonly UnreadableLine[];
}

const markers: ReadonlyMap<string, Marker> = new Map([
  ['@revoked', 'revoked'],
  ['@cert-authority', 'cert-authority'],
]);

/** Never throws: what is no entry comes back as unreadable, by its line. */
export function parseKnownHosts(text: string, file: string): KnownHosts {
  const entries: KnownHost[] = [];
  const unreadable: UnreadableLine[] = [];
  for (const [index, content] of text.split('\n').entries()) {
    const parsed = parseLine(content);
    const location = { file, line: index + 1 };
    if (typeof parsed === 'string') unreadable.push({ ...location, message: parsed });
    else if (parsed !== null) entries.push({ ...parsed, ...location });
  }
  return { entries, unreadable };
}

type Parsed = Omit<KnownHost, 'file' | 'line'>;

/** Null: nothing on this line. A string: why it cannot be read. */
function parseLine(content: string): Parsed | string | null {
  const words = content.split(/[ \t\r\f\v]+/).filter(Boolean);
  const [first] = words;
  if (first === undefined || first.startsWith('#')) return null;
  let marker: Marker | null = null;
  if (first.startsWith('@')) {
    marker = markers.get(first) ?? null;
    if (marker === null) return `the marker ${first} is unknown`;
    words.shift();
  }
  const [hosts = '', type, encoded] = words;
  if (type === undefined || encoded === undefined) return 'too few words: a name, a key type and a key are needed';
  const names = parseNames(hosts);
  if (typeof names === 'string') return names;
  const key = decodeBase64(encoded);
  if (key === null) return 'the key is no base64';
  if (keyType(key) !== type) return `the key is no ${type}`;
  return { marker, names, type, key };
}

function parseNames(hosts: string): HostNames | string {
  if (!hosts.startsWith('|')) return { form: 'patterns', patterns: hosts.split(',').filter(Boolean) };
  const [, method, saltText = '', hashText = '', ...rest] = hosts.split('|');
  const [salt, hash] = [decodeBase64(saltText), decodeBase64(hashText)];
  if (method !== '1' || salt === null || hash === null || rest.length > 0) return 'the hashed name cannot be read';
  return { form: 'hashed', salt, hash };
}

/** The type that a public key names itself; null if it is none. */
export function keyType(key: Buffer): string | null {
  if (key.length < 4) return null;
  const length = key.readUInt32BE(0);
  return length === 0 || length > key.length - 4 ? null : key.toString('latin1', 4, 4 + length);
}

function decodeBase64(text: string): Buffer | null {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0 ? Buffer.from(text, 'base64') : null;
}
