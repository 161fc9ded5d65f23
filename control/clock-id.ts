/** Which CLOCK_MONOTONIC a process reads: that of its kernel's boot, in its time namespace. */
import { readFileSync, readlinkSync } from 'node:fs';

/** Equal for processes whose CLOCK_MONOTONIC is the same one; null: nobody knows. */
export function clockId(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${timeNamespace()}`;
  } catch {
    return null;
  }
}

/** Kernels before 5.6 have none. @throws where it cannot be read */
function timeNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/time');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
