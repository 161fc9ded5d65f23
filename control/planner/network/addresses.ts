/** Numeric addresses: which are link-local, and the subnet that they are in. */
import { familyOf } from '../../plan/address-family.ts';

export function isLinkLocal(address: string): boolean {
  return /^(?:fe[89ab][0-9a-f]:|169\.254\.)/iu.test(address);
}

/** Without the scope of a link-local one: the same interface has another on each host. */
export function withoutScope(address: string): string {
  return address.replace(/%.*$/u, '');
}

/** Equal for addresses of one subnet: its bits, and their number. */
export function subnetOf(address: string, prefixLength: number): string {
  const bits = familyOf(address) === 4 ? bitsOfIpv4(address) : bitsOfIpv6(withoutScope(address));
  return `${bits.slice(0, prefixLength)}/${prefixLength}`;
}

export interface Subnet {
  readonly address: string;
  readonly family: 4 | 6;
  /** That its addresses have in common. */
  readonly bits: number;
}

/** "10.1.0.0/16", "fd00::/64"; null: it is none. */
export function parseSubnet(text: string): Subnet | null {
  const [, address = '', length = ''] = /^([^/]+)\/([0-9]{1,3})$/u.exec(text) ?? [];
  const [family, bits] = [familyOf(address), Number(length)];
  return family === 0 || length === '' || bits > (family === 4 ? 32 : 128) ? null : { address, family, bits };
}

export function isWithin(address: string, { address: first, family, bits }: Subnet): boolean {
  return familyOf(address) === family && subnetOf(address, bits) === subnetOf(first, bits);
}

function bitsOfIpv4(address: string): string {
  return address
    .split('.')
    .map((byte) => Number(byte).toString(2).padStart(8, '0'))
    .join('');
}

function bitsOfIpv6(address: string): string {
  const [, before = address, dotted] = /^(.*:)([0-9]+\.[0-9.]+)$/u.exec(address) ?? [];
  const tail = dotted === undefined ? [] : (bitsOfIpv4(dotted).match(/.{16}/gu) ?? []);
  const [first = '', second] = (dotted === undefined ? before : before.replace(/([^:]):$/u, '$1')).split('::');
  const head = groupsOf(first);
  const rest = [...groupsOf(second ?? ''), ...tail];
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - rest.length) }, () => '0'.repeat(16));
  return [...head, ...zeros, ...rest].join('');
}

function groupsOf(text: string): string[] {
  const groups = text.split(':').filter((group) => group !== '');
  return groups.map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'));
}
