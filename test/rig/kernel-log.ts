/** The machine's kernel log, which all processes here have in common, also those of a cluster's hosts. */
import { closeSync, openSync, writeFileSync } from 'node:fs';

const LOG = '/dev/kmsg';

/** Null, or why it cannot be written and read here. */
export function kernelLogUnavailable(): string | null {
  try {
    closeSync(openSync(LOG, 'r+'));
    return null;
  } catch (error) {
    return `the kernel's log: ${String(error)}`;
  }
}

/** With its end: without, the kernel waits for more of it before it shows it to anybody. */
export function writeKernelLog(line: string): void {
  writeFileSync(LOG, `${line}\n`);
}
