/** A private directory per agent for its socket and the ranks' small files. The guardian removes it in the end. */
import { mkdtempSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../control/message-of.ts';

/** The longest path that a Unix socket can be bound to is 107 bytes. */
const MAX_BASE_BYTES = 60;

/** Creates a directory of mode 0700 with an unguessable name. Throws an Error with all directories tried if none is writable. */
export function makeRuntimeDirectory(jobId: string): string {
  const errors: string[] = [];
  for (const prefix of prefixes(jobId)) {
    try {
      return mkdtempSync(prefix);
    } catch (error) {
      errors.push(messageOf(error));
    }
  }
  const remedy = 'set TMPDIR on this host to a directory of at most 60 bytes in which you may write';
  throw new Error(`no directory can be made for the agent's socket: ${errors.join('; ')}; ${remedy}`);
}

/** Hosts that one enters without a login session have no XDG_RUNTIME_DIR, and containers may have a /tmp that is read-only. */
function prefixes(jobId: string): string[] {
  const own = `ncclrun-${process.getuid?.() ?? 0}-${jobId}-`;
  const session = process.env['XDG_RUNTIME_DIR'] ?? '';
  const shared = ['/tmp', process.env['TMPDIR'] ?? '', '/dev/shm', '/var/tmp'].filter(usable);
  return [...(usable(session) ? [join(session, `ncclrun-${jobId}-`)] : []), ...shared.map((base) => join(base, own))];
}

function usable(base: string): boolean {
  return base.startsWith('/') && Buffer.byteLength(base) <= MAX_BASE_BYTES;
}

/** For an agent without a guardian that would do it: there is at most its own socket in it. */
export function removeUnguarded(directory: string, socketPath: string): void {
  for (const remove of [() => unlinkSync(socketPath), () => rmdirSync(directory)]) {
    try {
      remove();
    } catch {
      // It is not there, or a rank has left more in it, which is the guardian's to remove.
    }
  }
}
