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
