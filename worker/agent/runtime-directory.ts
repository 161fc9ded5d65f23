/** A private directory per agent for its socket and the ranks' small files. Whoever of agent and guardian ends last removes it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The longest path that a Unix socket can be bound to is 107 bytes. */
const MAX_BASE_BYTES = 60;

/** Mode 0700, with an unguessable name. */
export function makeRuntimeDirectory(jobId: string): string {
  const base = process.env['XDG_RUNTIME_DIR'] ?? '';
  const usable = base.startsWith('/') && Buffer.byteLength(base) <= MAX_BASE_BYTES;
  if (usable) {
    try {
      return mkdtempSync(join(base, `ncclrun-${jobId}-`));
    } catch {
      // Not there on hosts that one enters without a login session.
    }
  }
  return mkdtempSync(`/tmp/ncclrun-${process.getuid?.() ?? 0}-${jobId}-`);
}

export function removeRuntimeDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
