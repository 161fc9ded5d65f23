/** Files that are appended to, of which only so many are open at a time: a job may have more ranks than we may have descriptors. */
import { constants, type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND } = constants;
const MAX_OPEN = 256;

interface OpenFile {
  readonly handle: Promise<FileHandle>;
  /** Number of pending writes. */
  users: number;
}

export class FilePool {
  /** The least recently used first. */
  readonly #open = new Map<string, OpenFile>();
  readonly #directories = new Map<string, Promise<void>>();

  /** Makes the file, and the directories above it, and empties it. Rejects as node:fs does. */
  async create(path: string): Promise<void> {
    const directory = dirname(path);
    const made = this.#directories.get(directory) ?? makeDirectory(directory);
    this.#directories.set(directory, made);
    await made;
    await this.#use(path, O_TRUNC, async () => {});
  }

  /** Appends all of `bytes`. Rejects as node:fs does. */
  append(path: string, bytes: Uint8Array): Promise<void> {
    return this.#use(path, 0, (handle) => handle.appendFile(bytes));
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    for (const { handle } of files) await (await handle).close();
  }

  async #use(path: string, flags: number, work: (handle: FileHandle) => Promise<void>): Promise<void> {
    const file = this.#open.get(path) ?? { handle: open(path, O_WRONLY | O_CREAT | O_APPEND | flags, 0o666), users: 0 };
    this.#open.delete(path);
    this.#open.set(path, file);
    file.users += 1;
    try {
      await work(await file.handle);
    } catch (error) {
      if (this.#open.get(path) === file) this.#open.delete(path);
      throw error;
    } finally {
      file.users -= 1;
      if (file.users === 0 && this.#open.get(path) !== file) await closeBroken(file);
    }
    await this.#closeSpare();
  }

  async #closeSpare(): Promise<void> {
    for (const [path, { handle, users }] of this.#open) {
      if (this.#open.size <= MAX_OPEN) return;
      if (users > 0) continue;
      this.#open.delete(path);
      await (await handle).close();
    }
  }
}

/** Closes a file whose failure has been reported. */
async function closeBroken({ handle }: OpenFile): Promise<void> {
  try {
    await (await handle).close();
  } catch {
    // It was never open.
  }
}

/** With those above it. Node's own recursive mkdir never returns if the kernel reports ENOENT below a directory that is there, as in /proc. */
async function makeDirectory(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent);
  try {
    await mkdir(path);
  } catch (error) {
    if (!(await isDirectory(path))) throw error; // else somebody was faster
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
