/** `ncclrun bundle [-o FILE]`: writes the archive that hosts without ncclrun get. */
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { printable } from '../../../control/printable.ts';
import { installedIdentity } from '../../remote/staging/identity.ts';
import { archive, canCompress } from '../../remote/staging/archive.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { quote } from '../../remote/shell/shell.ts';
import { readWords } from '../read-words.ts';
import { usageError } from '../../model/usage-error.ts';
import { messageOf } from '../../../control/message-of.ts';

/** Throws a FailureError (usage), also where the file cannot be written. */
export async function bundle(argv: readonly string[]): Promise<number> {
  const { asked, settings } = await readWords<'help' | 'output-archive'>(argv.map(unmistakable), commandTable.bundle);
  if (asked === 'help') return (await import('./help.ts')).help('bundle');
  const identity = installedIdentity();
  if (identity === null)
    throw usageError(
      'this installation has no dist/identity: it was not built to its end',
      'run npm run build in a checkout, or install ncclrun again',
    );

  const file = settings.text('output-archive') ?? `ncclrun-${identity.key}-linux-${process.arch}.tar.gz`;
  const compression = /\.(tar\.)?zst$/.test(file) ? 'zstd' : 'gzip';
  if (!canCompress(compression))
    throw usageError(`${file}: Node ${process.versions.node} writes no zstd`, 'write a .tar.gz');
  const { bytes } = await archive(compression, identity);
  const { stdout, stderr } = standardStreams();
  if (file === '/dev/stdout') {
    await stdout.write(bytes);
    return 0;
  }
  await write(file, bytes);
  const size = `${(bytes.length / 2 ** 20).toFixed(1)} MiB`;
  const unpack = `mkdir -p ~/.cache/ncclrun && tar -${compression === 'gzip' ? 'xz' : '-zstd -x'}f ${quote(file)} -C ~/.cache/ncclrun`;
  const wrote = `ncclrun: wrote ${file} (${size}, ncclrun ${identity.version} and Node for ${process.arch})`;
  const next = `  next: on each host that lacks it, beside a copy of this file: ${unpack}`;
  await stderr.print(`${printable(wrote)}\n${printable(next)}\n`);
  return 0;
}

/** yargs takes a lone dash for the lack of a value. */
function unmistakable(word: string): string {
  return word === '-' ? '/dev/stdout' : word;
}

/** A file: whole or not at all. */
async function write(file: string, bytes: Buffer): Promise<void> {
  const device = await stat(file).then(
    (found) => !found.isFile(),
    () => false,
  );
  const temporary = `${resolve(file)}.${process.pid}.new`;
  try {
    if (device) return await writeFile(file, bytes);
    await writeFile(temporary, bytes);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    const reason = messageOf(error);
    throw usageError(
      `${file} cannot be written: ${reason}`,
      'name a file with -o where you may write, and where there is room',
    );
  }
}
