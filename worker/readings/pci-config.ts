/**
 * The configuration space of PCI devices (PCI Express Base Specification, 7.5 and 7.7.8), of which only root may read more than the first 64 bytes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const STANDARD_BYTES = 64;
const FIRST_CAPABILITY = 0x34;
const PCI_EXPRESS = 0x10;
const DEVICE_CONTROL = 0x08;
const EXTENDED_BYTES = 4096;
const FIRST_EXTENDED = 0x100;
const ACCESS_CONTROL = 0x0d;
const ACCESS_CONTROL_REGISTER = 0x06;
/** Request and completion redirect, upstream forwarding: what devices below send to each other goes up first. */
const REDIRECTS = 0x04 | 0x08;
/** Capabilities of a device; more are a circle. */
const MAX_CAPABILITIES = 96;

/** Null: there is none, or only its head may be read. */
export function configOf(root: string, device: string): Buffer | null {
  try {
    const config = readFileSync(join(root, device, 'config'));
    return config.length > STANDARD_BYTES ? config : null;
  } catch {
    return null;
  }
}

/** Bytes; null: the device is none of PCI Express. */
export function readRequestIn(config: Buffer): number | null {
  const control = deviceControlIn(config);
  return control === null ? null : 128 << ((control >> 12) & 7);
}

/** Bytes; null: the device is none of PCI Express. */
export function payloadIn(config: Buffer): number | null {
  const control = deviceControlIn(config);
  return control === null ? null : 128 << ((control >> 5) & 7);
}

function deviceControlIn(config: Buffer): number | null {
  let at = config[FIRST_CAPABILITY] ?? 0;
  for (
    let seen = 0;
    at >= STANDARD_BYTES && at + DEVICE_CONTROL + 2 <= config.length && seen < MAX_CAPABILITIES;
    seen++
  ) {
    if (config[at] === PCI_EXPRESS) return config.readUInt16LE(at + DEVICE_CONTROL);
    at = config[at + 1] ?? 0;
  }
  return null;
}

/** Null: the extended capabilities cannot be read. */
export function redirectsIn(config: Buffer): boolean | null {
  if (config.length < EXTENDED_BYTES) return null;
  let at = FIRST_EXTENDED;
  for (let seen = 0; at >= FIRST_EXTENDED && at + 8 <= config.length && seen < MAX_CAPABILITIES; seen++) {
    const header = config.readUInt32LE(at);
    if ((header & 0xffff) === ACCESS_CONTROL)
      return (config.readUInt16LE(at + ACCESS_CONTROL_REGISTER) & REDIRECTS) !== 0;
    at = header >>> 20;
  }
  return false;
}
