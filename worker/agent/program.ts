/** TypeScript and JavaScript programs run on the Node that runs us; everything else is started as it is. */
import { accessSync, constants, existsSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { installationRoot } from './installation.ts';

const nodeExtensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs']);

/** A program of the launcher's installation is taken from ours: a host that got a copy has it elsewhere. */
export function fromOwnInstallation(argv: readonly string[], theirs: string): readonly string[] {
  const [program = '', ...rest] = argv;
  if (theirs === installationRoot || !program.startsWith(`${theirs}/`) || existsSync(program)) return argv;
  return [join(installationRoot, program.slice(theirs.length)), ...rest];
}

export interface NodeProgram {
  readonly argv: readonly string[];
  /** Whether the file can be read. Node itself would only answer with a status of 1. */
  readonly readable: boolean;
}

/** Null if `argv` is no program for Node. Its path is taken from the ranks' working directory. */
export function nodeProgram(argv: readonly string[], workingDirectory: string): NodeProgram | null {
  const [program] = argv;
  if (program === undefined || !nodeExtensions.has(extname(program))) return null;
  return {
    argv: [process.execPath, '--disable-warning=ExperimentalWarning', ...argv],
    readable: isReadable(resolve(workingDirectory, program)),
  };
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
