/** Says on stderr what of the settings files is not obeyed, before anything else: what follows may come of it. */
import { refusalTexts } from './refusal.ts';
import type { ReadSettings } from './settings-file.ts';

/** Returns the lines, for reports of a job. */
export async function reportRefusals(files: readonly ReadSettings[]): Promise<readonly string[]> {
  const lines = refusalTexts(files);
  if (lines.length === 0) return lines;
  const { makePaint } = await import('../text/colour.ts');
  const { standardStreams } = await import('../report/standard-streams.ts');
  const { ourLine } = await import('../report/summary.ts');
  const streams = standardStreams();
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  // Whoever reads stderr may be gone; that is no reason to end.
  await streams.stderr.printPainted(lines.map((line) => ourLine(line, paint)).join('')).catch(() => {});
  return lines;
}
