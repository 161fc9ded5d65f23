/** Whether a descriptor is a terminal, told from its device number: node:tty costs each start several milliseconds to load. */
import { fstatSync } from 'node:fs';

/** Virtual consoles and serial lines, /dev/tty and /dev/console, the Unix98 pseudo-terminals (Linux, Documentation/admin-guide/devices.txt). */
const isTerminalMajor = (major: number): boolean => major === 4 || major === 5 || (major >= 136 && major <= 143);

export function isTerminal(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor);
    return stat.isCharacterDevice() && isTerminalMajor((stat.rdev >> 8) & 0xfff);
  } catch {
    return false;
  }
}
