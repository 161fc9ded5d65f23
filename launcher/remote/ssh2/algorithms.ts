/** Which algorithms our own ssh offers, in which order: fast ones first, unless the user's configuration has an order of its own. */
import type { Algorithms, CipherAlgorithm, KexAlgorithm, MacAlgorithm, ServerHostKeyAlgorithm } from 'ssh2';
import type { HopSettings } from './settings.ts';

/** P-256 takes 5 ms less on each side than curve25519. None of those that need seconds of computing for a group. */
const kex: readonly KexAlgorithm[] = [
  'ecdh-sha2-nistp256',
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group14-sha256',
  'diffie-hellman-group16-sha512',
  'diffie-hellman-group18-sha512',
  'diffie-hellman-group-exchange-sha256',
];
/** Of these Node computes all but the last natively. */
const ciphers: readonly CipherAlgorithm[] = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'aes128-ctr',
  'aes192-ctr',
  'aes256-ctr',
  'chacha20-poly1305@openssh.com',
];
const macs: readonly MacAlgorithm[] = [
  'hmac-sha2-256-etm@openssh.com',
  'hmac-sha2-512-etm@openssh.com',
  'hmac-sha2-256',
  'hmac-sha2-512',
  'hmac-sha1-etm@openssh.com',
  'hmac-sha1',
];
const hostKeys: readonly ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
  'ssh-rsa',
];
/** Algorithms that OpenSSH excludes by default. */
const weak: readonly string[] = ['ssh-rsa'];

/** Which of the lists the user has ordered. */
export interface UserOrders {
  readonly kex: boolean;
  readonly ciphers: boolean;
  readonly macs: boolean;
}

/** `knownTypes`: types of the host's known keys, which are asked for first. */
export function offeredAlgorithms(
  settings: HopSettings,
  orders: UserOrders,
  knownTypes: readonly string[],
): Algorithms {
  return {
    kex: chosen(kex, settings.kex, orders.kex),
    cipher: chosen(ciphers, settings.ciphers, orders.ciphers),
    hmac: chosen(macs, settings.macs, orders.macs),
    serverHostKey: hostKeyOrder(settings, knownTypes),
    compress: ['none'],
  };
}

/** The setting of which nothing is left that we can do; null if there is something of each. */
export function impossibleAlgorithms(settings: HopSettings): string | null {
  if (chosen(kex, settings.kex, false).length === 0) return 'KexAlgorithms';
  if (chosen(ciphers, settings.ciphers, false).length === 0) return 'Ciphers';
  if (hostKeyOrder(settings, []).length === 0) return 'HostKeyAlgorithms';
  return null;
}

function hostKeyOrder(settings: HopSettings, knownTypes: readonly string[]): ServerHostKeyAlgorithm[] {
  const usable = chosen(hostKeys, settings.hostKeys, true).filter(
    (name) => settings.hostKeys !== null || !weak.includes(name),
  );
  const known = usable.filter((name) => knownTypes.includes(keyTypeOf(name)));
  return [...known, ...usable.filter((name) => !known.includes(name))];
}

/** An RSA key has several signature algorithms. */
function keyTypeOf(algorithm: string): string {
  return algorithm.startsWith('rsa-sha2-') ? 'ssh-rsa' : algorithm;
}

function chosen<Name extends string>(
  ours: readonly Name[],
  users: readonly string[] | null,
  usersOrder: boolean,
): Name[] {
  if (users === null) return [...ours];
  const both = ours.filter((name) => users.includes(name));
  return usersOrder ? both.toSorted((a, b) => users.indexOf(a) - users.indexOf(b)) : both;
}
