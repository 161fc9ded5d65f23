/** TypeScript and JavaScript programs run on the Node that runs us; everything else is started as it is. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installationRoot } from './installation.ts';

/** Lets Node resolve 'ncclrun' to this installation's library (scripts/resolve.mjs). */
const resolver = join(installationRoot, 'dist/bundle/resolve.mjs');

const nodeExtensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs']);

/** A program of the launcher's installation is taken from ours: a host that got a copy has it elsewhere. */
export function fromOwnInstallation(argv: readonly string[], theirs: string): readonly string[] {
  const [program = '', ...rest] = argv;
  if (theirs === installationRoot || !program.startsWith(`${theirs}/`) || existsSync(program)) return argv;
  return [join(installationRoot, program.slice(theirs.length)), ...rest];
}

interface NodeProgram {
  readonly argv: readonly string[];
  /** Whether the file can be read. Node itself would only answer with a status of 1. */
  readonly readable: boolean;
}

/** Null if `argv` is no program for Node. Its path is taken from the ranks' working directory. */
export function nodeProgram(argv: readonly string[], workingDirectory: string): NodeProgram | null {
  const [program] = argv;
  if (program === undefined || !nodeExtensions.has(extname(program))) return null;
  const path = resolve(workingDirectory, program);
  const ours = findsNcclrun(path) ? [] : ['--import', pathToFileURL(resolver).href];
  return {
    argv: [process.execPath, '--disable-warning=ExperimentalWarning', ...ours, ...argv],
    readable: isReadable(path),
  };
}

/** True if Node resolves 'ncclrun' for the program. It does not where ncclrun was installed globally or copied to the host. */
function findsNcclrun(program: string): boolean {
  let belongs = '';
  for (let directory = dirname(program); ; directory = dirname(directory)) {
    if (existsSync(join(directory, 'node_modules/ncclrun/package.json'))) return true;
    if (belongs === '') belongs = read(join(directory, 'package.json'));
    if (directory === dirname(directory)) break;
  }
  return /"name"\s*:\s*"ncclrun"/.test(belongs); // a package can import itself
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
