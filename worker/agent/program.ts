/** TypeScript and JavaScript programs run on the Node that runs us; everything else is started as it is. */
import { accessSync, constants } from 'node:fs';
import { extname, resolve } from 'node:path';

const nodeExtensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs']);

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
