/** `ncclrun config [--explain]`: the settings that a job started here would have. */
import { printableLine } from '../../../control/printable.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { checkedWords } from '../checked-words.ts';
import { commandTable } from '../command-table.ts';
import { explainedSettings, misspeltVariables, type ExplainedSettings } from '../explain-settings.ts';
import { configCommandLine, runCommandLine, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { shellLine } from '../normalise.ts';
import { refusedValue } from '../refusal.ts';
import { reportRefusals } from '../report-refusals.ts';

/** Throws a FailureError (usage), also for a settings file that is wrong. */
export async function config(argv: readonly string[]): Promise<number> {
  const read = readCommandLine<JobOptionName>(argv, configCommandLine, process.env);
  const { asked, settings, layers, files, notes, words } = read;
  if (asked === 'help') return (await import('./help.ts')).help('config');
  if (asked === 'version') return (await import('./version.ts')).version();
  checkedWords(words, commandTable.config);

  const explained = explainedSettings(runCommandLine.options, layers, files);
  const text = settings.flag('json')
    ? `${JSON.stringify(explained)}\n`
    : settings.flag('explain')
      ? explainedText(explained)
      : valuesText(explained);
  if (!settings.flag('json') && !settings.flag('explain')) await reportRefusals(files, notes);
  const { stdout, stderr } = standardStreams();
  await stdout.print(text);
  for (const { variable, guess } of misspeltVariables(runCommandLine.options, process.env)) {
    await stderr.print(
      `ncclrun: ${printableLine(variable)} is set but has no meaning\n  next: did you mean ${guess}?\n`,
    );
  }
  return 0;
}

/** What has a value, a setting per line. */
function valuesText({ settings }: ExplainedSettings): string {
  const given = settings.filter(({ values }) => values.length > 0);
  const width = Math.max(...given.map(({ name }) => name.length));
  return given.map(({ name, values }) => `${printableLine(`${name.padEnd(width)}  ${shellLine(values)}`)}\n`).join('');
}

function explainedText({ settings, files, refused }: ExplainedSettings): string {
  const rows = settings.map(({ name, values, source, overridden }) => [
    name,
    values.length === 0 ? '-' : shellLine(values),
    `${source ?? 'not set'}${overridden.map((other) => `; not ${other.source}: ${shellLine(other.values)}`).join('')}`,
  ]);
  const table = [['setting', 'value', 'from'], ...rows];
  const [first = 0, second = 0] = [0, 1].map((column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const lines = table.map(
    ([name = '', value = '', from = '']) => `${name.padEnd(first)}  ${value.padEnd(second)}  ${from}`,
  );
  const sources = files.map(({ path, found }) => `${path}${found ? '' : ' (not there)'}`);
  const ignored = [
    ...files.flatMap((file) => (file.refused === null ? [] : [`ignored: ${file.path}: ${file.refused}`])),
    ...refused.map((one) => `ignored: ${refusedValue(one)} (${one.source}): ${one.reason}`),
  ];
  const notes = ignored.length === 0 ? '' : `\n${ignored.map((line) => `${printableLine(line)}\n`).join('')}`;
  const order = `in order of precedence: option, environment, ${printableLine(sources.join(', '))}, default`;
  return `${lines.map(printableLine).join('\n')}\n${notes}\n${order}\n`;
}
