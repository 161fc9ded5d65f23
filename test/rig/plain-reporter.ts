/** A plain reporter whose streams are read here. */
import { PassThrough } from 'node:stream';
import { PlainReporter, type PlainOptions } from '../../launcher/report/plain.ts';
import { Writer } from '../../launcher/report/writer.ts';

export interface PlainReporterRig {
  readonly reporter: PlainReporter;
  readonly streams: PlainOptions['streams'];
  /** What it has written. */
  readonly seen: { stdout: string; stderr: string };
}

/** `terminals`: streams that are taken for terminals. */
export function plainReporter(
  options: Partial<PlainOptions> = {},
  terminals: readonly ('stdout' | 'stderr')[] = [],
): PlainReporterRig {
  const seen = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => {
    const stream = new PassThrough();
    stream.on('data', (data: Buffer) => (seen[name] += data.toString()));
    return new Writer(() => stream);
  };
  const streams = {
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    stderrIsTerminal: () => terminals.includes('stderr'),
    onOneTerminal: () => false,
    stdoutIsTerminal: () => terminals.includes('stdout'),
    columns: () => 80,
  };
  const reporter = new PlainReporter({
    streams,
    tagOutput: 'auto',
    timestamps: false,
    shown: true,
    shownRanks: null,
    fold: false,
    live: false,
    stdoutTaken: false,
    verbose: false,
    quiet: false,
    hangFails: false,
    paint: (_isTerminal) => (_format, text) => text,
    ...options,
  });
  return { reporter, streams, seen };
}
