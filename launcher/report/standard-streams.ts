/** This process's stdout and stderr, opened when first used. */
import { widenPipe } from '../local/host.ts';
import { Writer } from './writer.ts';

const KEPT_BYTES = 256 * 1024;
/** Whoever reads our output should not have to be woken for each 64 KiB of it, nor we for his having read them. */
const PIPE_BYTES = 1024 * 1024;

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

/** Of stderr, whose lines are sentences; stdout's are tables. */
function terminalColumns(): number | null {
  return process.stderr.isTTY ? process.stderr.columns || null : null;
}

export function standardStreams(): StandardStreams {
  return {
    stdout: new Writer(() => process.stdout, { retainedBytes: KEPT_BYTES, busy: () => widenPipe(1, PIPE_BYTES) }),
    stderr: new Writer(() => process.stderr, {
      retainedBytes: KEPT_BYTES,
      busy: () => widenPipe(2, PIPE_BYTES),
      columns: terminalColumns,
    }),
    stdoutIsTerminal: () => process.stdout.isTTY,
    stderrIsTerminal: () => process.stderr.isTTY,
    columns: () => process.stderr.columns || 80, // 0 where nobody told the terminal its size
    onOneTerminal: () => process.stdout.isTTY && process.stderr.isTTY,
  };
}

/** A job that follows in this process finds them as this one did: who wrote to them before listens no more. */
export function forgetStandardStreams(): void {
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error');
}
