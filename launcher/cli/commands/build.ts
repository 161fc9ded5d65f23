/** `ncclrun build [--kernels [ARCHITECTURES]]`: makes the native code of a checkout, and kernels for more GPUs. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installationRoot } from '../../local/host.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';
import { usageError } from '../../model/usage-error.ts';

/** Returns the build's status. Throws a FailureError (usage) where there is nothing to build from. */
export async function build(argv: readonly string[]): Promise<number> {
  const { asked, settings } = await readWords<'help' | 'kernels'>(argv.map(withValue), commandTable.build);
  if (asked === 'help') return (await import('./help.ts')).help('build');
  const script = join(installationRoot, 'scripts/build.mjs');
  if (!existsSync(script) || !existsSync(join(installationRoot, 'node_modules/esbuild')))
    throw usageError(
      `${installationRoot} has not what ncclrun is built from`,
      'clone the repository, run npm install there, and this command of it',
    );
  const kernels = settings.text('kernels');
  const argument = kernels === null ? [] : ['--kernels', kernels];
  const builder = spawn(process.execPath, [script, ...argument], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    builder.on('error', reject);
    builder.on('close', (status) => resolve(status ?? 1));
  });
}

/** Without a value: for the GPUs of this machine. */
function withValue(word: string, index: number, argv: readonly string[]): string {
  const next = argv[index + 1];
  return word === '--kernels' && (next === undefined || next.startsWith('-')) ? '--kernels=native' : word;
}
