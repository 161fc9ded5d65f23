/** This process's stdout and stderr, opened when first used. */
import { Writer } from './writer.ts';

export interface StandardStreams {
  readonly stdout: Writer;
  readonly stderr: Writer;
  stdoutIsTerminal(): boolean;
  stderrIsTerminal(): boolean;
  /** Characters in a line of stderr's terminal. */
  columns(): number;
  /** Both go to terminals, so that what one writes appears amid the other's lines. */
  onOneTerminal(): boolean;
}

export function standardStreams(): StandardStreams {
  return {
    stdout: new Writer(() => process.stdout),
    stderr: new Writer(() => process.stderr),
    stdoutIsTerminal: () => process.stdout.isTTY,
    stderrIsTerminal: () => process.stderr.isTTY,
    columns: () => process.stderr.columns || 80, // 0 where nobody told the terminal its size
    onOneTerminal: () => process.stdout.isTTY && process.stderr.isTTY,
  };
}
