/** TypeScript and JavaScript programs run on the Node that runs us, Python programs on the environment's python3; everything else is started as it is. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemPath } from '../../control/system-text.ts';
import { installationRoot } from './installation.ts';

/** Lets Node resolve 'ncclrun' to this installation's library (scripts/resolve.mjs). */
const resolver = join(installationRoot, 'dist/bundle/resolve.mjs');

const nodeExtensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs']);

/** A program of the launcher's installation is taken from ours: a host that got a copy has it elsewhere. */
export function fromOwnInstallation(argv: readonly string[], theirs: string): readonly string[] {
  const [program = '', ...rest] = argv;
  if (theirs === installationRoot || !program.startsWith(`${theirs}/`) || existsSync(systemPath(program))) return argv;
  return [join(installationRoot, program.slice(theirs.length)), ...rest];
}

interface InterpretedProgram {
  readonly argv: readonly string[];
  /** Whether the file can be read. The interpreter itself would only answer with a status of its own. */
  readonly readable: boolean;
}

/** Null if `argv` is started as it is. Its path is taken from the ranks' working directory. */
export function interpretedProgram(argv: readonly string[], workingDirectory: string): InterpretedProgram | null {
  const [program] = argv;
  if (program === undefined) return null;
  const path = resolve(workingDirectory, program);
  if (extname(program) === '.py') return pythonProgram(argv, path);
  if (!nodeExtensions.has(extname(program))) return null;
  const ours = findsNcclrun(path) ? [] : ['--import', pathToFileURL(resolver).href];
  return {
    argv: [process.execPath, '--disable-warning=ExperimentalWarning', ...ours, ...argv],
    readable: isReadable(path),
  };
}

/** Null for a file that is executable, whose first line names its interpreter, and for one that is not there: a program on the PATH may have its name. */
function pythonProgram(argv: readonly string[], path: string): InterpretedProgram | null {
  if (!existsSync(systemPath(path)) || isExecutable(path)) return null;
  return { argv: ['python3', ...argv], readable: isReadable(path) };
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
    return readFileSync(systemPath(path), 'utf8');
  } catch {
    return '';
  }
}

function isReadable(path: string): boolean {
  return isAccessible(path, constants.R_OK);
}

/** A file that is executable without a first line for the kernel would not start. */
function isExecutable(path: string): boolean {
  return isAccessible(path, constants.X_OK) && read(path).startsWith('#!');
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(systemPath(path), mode);
    return true;
  } catch {
    return false;
  }
}
