/** Reports on stderr what of the settings files and of the command line is not obeyed, before anything else: what follows may come of it. */
import { refusalTexts } from './refusal.ts';
import { chooseColour, makePaint } from '../text/colour.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import type { ReadSettings } from './settings-file.ts';

/** As reportRefusals, for a job: --color holds from here on, and --quiet prints nothing. */
export async function reportBeforeJob(
  settings: Settings<JobOptionName>,
  files: readonly ReadSettings[],
  notes: readonly string[],
): Promise<readonly string[]> {
  chooseColour(settings.text('color'));
  if (settings.flag('quiet')) return [...notes, ...refusalTexts(files)];
  return reportRefusals(files, notes);
}

/** Returns the lines, for reports of a job. */
export async function reportRefusals(
  files: readonly ReadSettings[],
  notes: readonly string[] = [],
): Promise<readonly string[]> {
  const lines = [...notes, ...refusalTexts(files)];
  if (lines.length === 0) return lines;
  const { standardStreams } = await import('../report/standard-streams.ts');
  const { ourLine } = await import('../report/summary.ts');
  const streams = standardStreams();
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  // Whoever reads stderr may be gone; that is no reason to end.
  await streams.stderr.printPainted(lines.map((line) => ourLine(line, paint)).join('')).catch(() => {});
  return lines;
}
