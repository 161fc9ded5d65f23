/** This process's stdout and stderr, opened when first used. */
import { Writer } from './writer.ts';

export interface StandardStreams {
  readonly stdout: Writer;
  readonly stderr: Writer;
  stderrIsTerminal(): boolean;
  /** Both go to terminals, so that what one writes appears amid the other's lines. */
  onOneTerminal(): boolean;
}

export function standardStreams(): StandardStreams {
  return {
    stdout: new Writer(() => process.stdout),
    stderr: new Writer(() => process.stderr),
    stderrIsTerminal: () => process.stderr.isTTY,
    onOneTerminal: () => process.stdout.isTTY && process.stderr.isTTY,
  };
}
