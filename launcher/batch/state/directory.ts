/** Where batches are kept on this machine: one directory for each, and the user's alone. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { homeDirectory } from '../../../control/home-directory.ts';
import { ownUser } from '../../../control/own-user.ts';
import { untrustedPath } from '../../../control/trusted-path.ts';
import { usageError } from '../../model/usage-error.ts';
import { nearest } from '../../text/nearest.ts';
import { errorCode } from '../attempt/error-code.ts';
import { type Keeping, keepingOf } from './file-systems.ts';

export class BatchDirectory {
  readonly id: string;
  readonly path: string;

  constructor(root: string, id: string) {
    this.id = id;
    this.path = join(root, id);
  }

  get database(): string {
    return join(this.path, 'batch.db');
  }

  get attempts(): string {
    return join(this.path, 'attempts');
  }

  /** All hosts of the batch, and how they are reached; not there for a batch inside an allocation. */
  get hostfile(): string {
    return join(this.path, 'hosts');
  }

  /** How other commands reach the scheduler. */
  get note(): string {
    return join(this.path, 'scheduler.json');
  }
}

/** It names a directory, and has a task behind it in `sweep-1/train[3]`. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/u;

interface Root {
  readonly path: string;
  /** What the user should know of the place. */
  readonly notice: string | null;
}

/** Makes it where it is not there. Throws a FailureError (usage) where there is no place for batches. */
export function stateRoot(environment: Readonly<Record<string, string | undefined>>): Root {
  const wanted = wantedRoot(environment);
  const local = localRoot();
  if (wanted === null) return made(local, null);
  const { path, keeping } = makeAndLook(wanted);
  if (keeping.kind !== 'shared') return made(path, passingNotice(path, keeping));
  return made(local, `${path} is on ${keeping.name}, which no database may be on: batches are kept in ${local}`);
}

/** Where they are if there are any: nothing is made. Throws a FailureError (usage) where others could have put what is there. */
export function existingRoot(environment: Readonly<Record<string, string | undefined>>): string {
  const wanted = wantedRoot(environment);
  const isUsed = wanted !== null && existsSync(wanted) && keepingOf(wanted).kind !== 'shared';
  const path = isUsed ? wanted : localRoot();
  if (existsSync(path)) refuseUntrusted(path);
  return path;
}

function localRoot(): string {
  return join('/var/tmp', `ncclrun-${ownUser()}`, 'batch');
}

/** A directory with the next free id: `name-1`, `name-2` … Throws as node:fs does. */
export function newBatchDirectory(root: string, name: string, id: string | null): BatchDirectory {
  if (id !== null) {
    if (!ID.test(id))
      throw usageError(
        `"${id}" cannot be the name of a batch`,
        'write letters, digits, - and _, 63 at most, such as --id sweep-july',
      );
    const directory = new BatchDirectory(root, id);
    if (makeOnce(directory.path)) return directory;
    throw usageError(
      `there is a batch ${id} already`,
      `go on with it: ncclrun batch --resume ${id}; or give another --id`,
    );
  }
  const used = batchIds(root).flatMap((one) =>
    one.startsWith(`${name}-`) ? [Number(one.slice(name.length + 1))] : [],
  );
  for (let number = Math.max(0, ...used.filter(Number.isSafeInteger)) + 1; ; number += 1) {
    const directory = new BatchDirectory(root, `${name}-${number}`);
    if (makeOnce(directory.path)) return directory;
  }
}

/** In alphabetical order; none where nothing was ever kept. */
export function batchIds(root: string): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
    .toSorted();
}

/** Throws a FailureError (usage): there is no such batch. */
export function foundBatch(root: string, id: string): BatchDirectory {
  const ids = batchIds(root);
  if (ids.includes(id)) return new BatchDirectory(root, id);
  const meant = nearest(id, ids);
  throw usageError(
    `there is no batch "${id}" on this machine`,
    meant === null ? 'ncclrun jobs lists the batches' : `did you mean ${meant}? ncclrun jobs lists the batches`,
  );
}

function wantedRoot(environment: Readonly<Record<string, string | undefined>>): string | null {
  const given = environment['XDG_STATE_HOME'] ?? '';
  if (isAbsolute(given)) return join(given, 'ncclrun', 'batch');
  const home = homeDirectory();
  return home === null ? null : join(home, '.local', 'state', 'ncclrun', 'batch');
}

function makeAndLook(path: string): { readonly path: string; readonly keeping: Keeping } {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return { path, keeping: keepingOf(path) };
  } catch (error) {
    const code = errorCode(error);
    if (code === null) throw error;
    throw usageError(
      `${path}, where batches are kept, cannot be made (${code})`,
      'set XDG_STATE_HOME to a directory of yours on a local disk',
    );
  }
}

function made(path: string, notice: string | null): Root {
  makeAndLook(path);
  refuseUntrusted(path);
  return { path, notice };
}

/** What is kept there is obeyed: processes are ended, and programs begun. */
function refuseUntrusted(path: string): void {
  const why = untrustedPath(path, ownUser());
  if (why !== null)
    throw usageError(
      `batches cannot be kept in ${path}: ${why}`,
      'make it and the directories above it yours alone, or set XDG_STATE_HOME',
    );
}

function passingNotice(path: string, keeping: Keeping): string | null {
  if (keeping.kind !== 'passing') return null;
  const until = keeping.name === 'overlay' ? 'its container' : 'a restart of this machine';
  return `${path} is on ${keeping.name}: batches are lost with ${until}; XDG_STATE_HOME names another place`;
}

/** False: it is there already. */
function makeOnce(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}
