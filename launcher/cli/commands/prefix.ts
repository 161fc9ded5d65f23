/**
 * `ncclrun prefix`: a directory with lib, include and lib/pkgconfig, as builds of programs for NCCL want it (NCCL_HOME). Its bin and share/man
 * serve those who put it into PATH: npm links commands, but no manual pages.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '../../../control/cache-directory.ts';
import { messageOf } from '../../../control/message-of.ts';
import { ownUser } from '../../../control/own-user.ts';
import { untrustedPath } from '../../../control/trusted-path.ts';
import { installationRoot, installedVersion, libraryPath } from '../../local/host.ts';
import { installedIdentity } from '../../remote/staging/identity.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';
import { usageError } from '../../model/usage-error.ts';

const headers = join(installationRoot, 'native/include');
/** Path in the directory → what the link leads to. */
const allLinks: readonly (readonly [string, string])[] = [
  ['lib/libnccl.so.2', libraryPath],
  ['lib/libnccl.so', libraryPath],
  ['include/nccl.h', join(headers, 'nccl.h')],
  ['include/ncclrun.h', join(headers, 'ncclrun.h')],
  ['bin/ncclrun', join(installationRoot, 'bin/ncclrun')],
  ['share/man/man1/ncclrun.1', join(installationRoot, 'dist/man/ncclrun.1')],
];
/** Copies for hosts have no manual page. */
const links = allLinks.filter(([, target]) => existsSync(target));
const PKG_CONFIG = 'lib/pkgconfig/nccl.pc';

/** Throws a FailureError (usage) if no candidate directory is writable. */
export async function prefix(argv: readonly string[]): Promise<number> {
  const { asked } = await readWords<'help'>(argv, commandTable.prefix);
  if (asked === 'help') return (await import('./help.ts')).help('prefix');
  await standardStreams().stdout.print(`${await prefixDirectory()}\n`);
  return 0;
}

/** In the installation where we may write there, so that what is linked to it keeps working; else in the cache directory. */
async function prefixDirectory(): Promise<string> {
  const cache = cacheDirectory(process.env);
  const key = installedIdentity()?.key ?? installedVersion();
  const directories = [join(installationRoot, 'build/prefix'), ...(cache === null ? [] : [join(cache, 'prefix', key)])];
  const reasons: string[] = [];
  for (const directory of directories) {
    if (await isWhole(directory)) return directory;
    try {
      await make(directory);
      return directory;
    } catch (error) {
      reasons.push(messageOf(error));
    }
  }
  throw usageError(
    `cannot create the directory: ${reasons.join('; ')}`,
    `give access to one of them: ${directories.join(', ')}`,
  );
}

/** Somebody else's links might lead elsewhere tomorrow. */
async function isWhole(directory: string): Promise<boolean> {
  if (untrustedPath(directory, ownUser()) !== null) return false;
  try {
    for (const [name, target] of links)
      if ((await realpath(join(directory, name))) !== (await realpath(target))) return false;
    return (await readFile(join(directory, PKG_CONFIG), 'utf8')) === pkgConfig();
  } catch {
    return false;
  }
}

/** Whole or not at all, whoever else makes it at the same time. */
async function make(directory: string): Promise<void> {
  const draft = `${directory}.${process.pid}.new`;
  try {
    for (const [name, target] of links) {
      await mkdir(join(draft, dirname(name)), { recursive: true, mode: 0o755 });
      await symlink(target, join(draft, name));
    }
    await mkdir(join(draft, dirname(PKG_CONFIG)), { recursive: true, mode: 0o755 });
    await writeFile(join(draft, PKG_CONFIG), pkgConfig());
    await rm(directory, { recursive: true, force: true });
    await rename(draft, directory);
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => {});
    if (!(await isWhole(directory))) throw error;
  }
}

function pkgConfig(): string {
  return `prefix=\${pcfiledir}/../..
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: nccl
Description: NCCL's interface, as ncclrun ${installedVersion()} implements it
Version: 2.28.9
Libs: -L\${libdir} -lnccl
Cflags: -I\${includedir}
`;
}
