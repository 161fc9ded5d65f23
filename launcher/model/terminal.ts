/** Whether a descriptor is a terminal, told from its device number: node:tty costs each start several milliseconds to load. */
import { fstatSync, readFileSync } from 'node:fs';

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

/**
 * Whether the terminal is ours to read and to draw on, not the shell's or another job's. From process group, terminal and the terminal's
 * foreground group, fields 5, 7 and 8 of /proc/self/stat (`stat`); true without a controlling terminal.
 */
export function isInForeground(stat = readFileSync('/proc/self/stat', 'latin1')): boolean {
  const fields = stat.replace(/^.*\) /s, '').split(' ');
  return fields[4] === '0' || fields[2] === fields[5];
}
