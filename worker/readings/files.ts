/** Directories that jobs use, mounts that do not answer, and shared memory that nobody uses any more. */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DirectoryReading, HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';

/** Longer than any file system that works takes. */
const LIMIT_MS = 3000;
const MAX_MOUNTS = 64;

interface Mount {
  readonly source: string;
  readonly path: string;
  readonly fileSystem: string;
  readonly options: readonly string[];
}

interface Space {
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly freeFiles: number;
}

/** `used`: what each directory is for, with its path. */
export async function readFiles(
  used: readonly (readonly [use: string, path: string])[],
  limitMs = LIMIT_MS,
): Promise<HostReadings['files']> {
  const mounts = mountsIn(readText('/', 'proc/self/mounts'));
  const asked = mounts.filter(({ fileSystem }) => isOnDiskOrNetwork(fileSystem)).slice(-MAX_MOUNTS);
  const [spaces, answers] = await Promise.all([
    Promise.all(used.map(([, path]) => spaceOf(existing(path, mounts), limitMs))),
    Promise.all(asked.map((mount) => spaceOf(mount.path, limitMs))),
  ]);
  const hanging = asked.filter((_, index) => answers[index] === 'hangs');
  return {
    directories: used.map(([use, path], index) => directoryOf(use, path, spaces[index] ?? 'failed', mounts, hanging)),
    hanging: hanging.map(({ path, fileSystem, source }) => ({ path, fileSystem, source })),
    staleSharedMemory: staleSharedMemory(),
  };
}

/** Later mounts hide earlier ones of the same path. Spaces are written as \040. */
export function mountsIn(text: string): Mount[] {
  const all = text.split('\n').flatMap((line) => {
    const [source, path, fileSystem, options] = line.split(' ');
    if (source === undefined || path === undefined || fileSystem === undefined) return [];
    return [{ source: plain(source), path: plain(path), fileSystem, options: (options ?? '').split(',') }];
  });
  return [...new Map(all.map((mount) => [mount.path, mount])).values()];
}

function plain(word: string): string {
  return word.replaceAll(/\\([0-7]{3})/gu, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function isOnDiskOrNetwork(fileSystem: string): boolean {
  return /^(ext[234]|xfs|btrfs|zfs|f2fs|nfs4?|cifs|smb3|lustre|beegfs|gpfs|ceph|glusterfs|wekafs|9p|virtiofs|overlay|fuse(\..*)?|fuseblk|tmpfs)$/u.test(
    fileSystem,
  );
}

/** A directory that is not there yet is made in the nearest one that is; what lies on a mount is not asked, since that may hang. */
function existing(path: string, mounts: readonly Mount[]): string {
  const mount = mountOf(path, mounts);
  if (mount !== undefined && mount.path === path) return path;
  for (let at = path; ; at = join(at, '..')) {
    if (at === '/' || at === mount?.path) return at;
    if (/^(nfs|fuse|cifs|lustre)/u.test(mount?.fileSystem ?? '')) return mount?.path ?? at;
    if (exists(at)) return at;
  }
}

function exists(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  const holds = (mount: Mount) => path === mount.path || path.startsWith(mount.path === '/' ? '/' : `${mount.path}/`);
  return mounts.filter(holds).toSorted((one, other) => other.path.length - one.path.length)[0];
}

async function spaceOf(path: string, limitMs: number): Promise<Space | 'hangs' | 'failed'> {
  const answer = await runTool('stat', ['-f', '-c', '%S %b %a %d', '--', path], limitMs);
  if ('problem' in answer) return answer.problem.includes('has not ended') ? 'hangs' : 'failed';
  const [block = 0, blocks = 0, free = 0, files = 0] = answer.output.split(' ').map(Number);
  return { totalBytes: block * blocks, freeBytes: block * free, freeFiles: files };
}

function directoryOf(
  use: string,
  path: string,
  space: Space | 'hangs' | 'failed',
  mounts: readonly Mount[],
  hanging: readonly Mount[],
): DirectoryReading {
  const mount = mountOf(path, mounts);
  const known = typeof space === 'string' ? null : space;
  const answers = mount === undefined || !hanging.includes(mount);
  return {
    use,
    path,
    totalBytes: known?.totalBytes ?? null,
    freeBytes: known?.freeBytes ?? null,
    freeFiles: known?.freeFiles ?? null,
    readOnly: mount?.options.includes('ro') ?? false,
    noexec: mount?.options.includes('noexec') ?? false,
    writable: known !== null && answers && isWritable(existing(path, mounts)),
    fileSystem: mount?.fileSystem ?? null,
  };
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** NCCL and PyTorch name theirs; a process that lives has them open or mapped. */
function staleSharedMemory(): HostReadings['files']['staleSharedMemory'] {
  const named = listDirectory('/', 'dev/shm').filter((name) => /^(nccl-|torch_|ncclrun-)/u.test(name));
  if (named.length === 0) return { files: 0, bytes: 0 };
  const inUse = new Set(
    listDirectory('/', 'proc')
      .filter((name) => /^[0-9]+$/u.test(name))
      .flatMap((pid) =>
        Array.from(readText('/', `proc/${pid}/maps`).matchAll(/\/dev\/shm\/(\S+)/gu), ([, name]) => name),
      ),
  );
  const stale = named.filter((name) => !inUse.has(name));
  return { files: stale.length, bytes: stale.reduce((sum, name) => sum + sizeOf(`/dev/shm/${name}`), 0) };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).blocks * 512;
  } catch {
    return 0;
  }
}
