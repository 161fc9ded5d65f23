/** A file whose server does not answer: whoever reads it waits in uninterruptible sleep. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile } from './compile.ts';

/** Null, or the sentence why there can be none here. */
export function silentFileUnavailable(): string | null {
  if (process.getuid?.() !== 0) return 'to mount a file system needs root';
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
    return null;
  } catch {
    return 'there is no /dev/fuse';
  }
}

export class SilentFile implements AsyncDisposable {
  readonly path: string;
  readonly #end: () => Promise<void>;

  private constructor(path: string, end: () => Promise<void>) {
    this.path = path;
    this.#end = end;
  }

  static async mount(): Promise<SilentFile> {
    const directory = await mkdtemp(join(tmpdir(), 'ncclrun-silent-'));
    const built = await mkdtemp(join(tmpdir(), 'ncclrun-silent-'));
    const server = spawn(await compile('test/rig/programs/silent-file.c', built), [directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const gone = once(server, 'exit');
    await Promise.race([once(server.stdout, 'data'), gone]);
    if (server.exitCode !== null) throw new Error(`no file system of ours could be mounted at ${directory}`);
    return new SilentFile(join(directory, 'data'), async () => {
      server.kill('SIGTERM');
      await gone;
      for (const one of [directory, built]) await rm(one, { recursive: true });
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}
