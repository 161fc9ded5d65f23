/** `ncclrun help [COMMAND|all]`, `--help [all]`: written from the tables. */
import { standardStreams } from '../../report/standard-streams.ts';
import { commandNames, isCommandName, type CommandName } from '../../model/command-names.ts';
import { commandTable, runEntry } from '../command-table.ts';
import type { Option } from '../../model/option.ts';
import { argumentText, defaultText, groupsOf } from '../option-groups.ts';
import { wrapped } from '../../text/wrap.ts';

const runNotes = [
  "Words after PROGRAM are the program's, options too. A first word that is one of the commands above is ours; to run a program of that name write: ncclrun -- perf",
  'Settings come from options, then the environment (in brackets above), ./ncclrun.json, $XDG_CONFIG_HOME/ncclrun/config.json; ncclrun config --explain shows them.',
  "Exit status: the program's; 2 usage, 124 a timeout, 125 launch failed, 126 not executable, 127 not found, 128+N signal N.",
];
/** Longer lines are hard to read, however wide the terminal. */
const WIDEST = 120;

/** A longer list of values is left to the whole help. */
const WIDEST_ARGUMENT = 24;

/** Those that most jobs need; `--help all` has the others. */
const usual = new Set([
  'np',
  'npernode',
  'host',
  'hostfile',
  'export',
  'wdir',
  'map-by',
  'bind-to',
  'isolate-gpus',
  'rsh',
  'tag-output',
  'output',
  'stdin',
  'json',
  'quiet',
  'verbose',
  'timeout',
  'on-failure',
  'max-restarts',
  'dry-run',
]);

/** Commands that the help of others names; `--help all` has them, too. */
const unusual: ReadonlySet<CommandName> = new Set(['hold', 'release', 'rerun', 'prefix', 'man']);

/** `everything`: of a job, every option. */
export async function help(command: 'run' | CommandName, everything = false): Promise<number> {
  const streams = standardStreams();
  const width = streams.stdoutIsTerminal() ? Math.min(process.stdout.columns, WIDEST) : WIDEST;
  const isShort = command === 'run' && !everything;
  await streams.stdout.print(isShort ? shortHelpText(width) : helpText(command, width));
  return 0;
}

/** The words after `ncclrun help`. Throws a FailureError (usage) for a command that is none. */
export async function helpCommand(argv: readonly string[]): Promise<number> {
  const { readWords } = await import('../read-words.ts');
  const { asked, words } = await readWords<'help'>(argv, commandTable.help);
  const [command = 'run'] = words;
  if (asked === 'help') return help('help');
  return help(isCommandName(command) ? command : 'run', command === 'all');
}

/** Examples, commands and the usual options, a line each, on a screen or two. */
export function shortHelpText(width: number): string {
  const { line, examples, usage, about } = runEntry;
  const shown = examples.map((example) => `  ${example}\n`).join('');
  const options: readonly Option[] = line.options;
  const rows = options.filter(({ name }) => usual.has(name)).map((option) => [spelling(option), shortText(option)]);
  const column = Math.max(...rows.map(([flags = '']) => flags.length));
  const texts = rows.map(([flags = '', text = '']) => `  ${flags.padEnd(column)}  ${text}\n`);
  const notes = runNotes.map((note) => wrapped(note, '', width)).join('');
  const more = 'All options: ncclrun --help all. From mpirun, srun, torchrun: docs/migration.md.\n';
  return `${shown}\nusage: ${usage}\n\n${wrapped(about, '', width)}\n${commandsText(commandNames.filter((name) => !unusual.has(name)))}\nOptions\n${texts.join('')}${more}\n${notes}`;
}

function spelling(option: Option): string {
  if (argumentText(option).length > WIDEST_ARGUMENT) return `${option.flags[0] ?? ''} HOW`;
  return `${option.flags[0] ?? ''}${argumentText(option)}`;
}

/** The help up to what it says of single values. */
function shortText({ help: text }: Option): string {
  return text.split(/[:;(,]/u, 1)[0]?.trim() ?? text;
}

/** In lines of at most `width` columns where words allow. */
export function helpText(command: 'run' | CommandName, width = Number.POSITIVE_INFINITY): string {
  const { line, examples, usage, about } = command === 'run' ? runEntry : commandTable[command];
  const groups = groupsOf(line.options).map(
    ({ title, options }) => `\n${title}\n${options.map((option) => optionText(option, width)).join('')}`,
  );
  const shown = examples.map((example) => `  ${example}\n`).join('');
  const notes = runNotes.map((note) => wrapped(note, '', width)).join('');
  const end = command === 'run' ? `\n${commandsText()}\n${notes}` : '';
  return `${shown}\nusage: ${usage}\n\n${wrapped(about, '', width)}${groups.join('')}${end}`;
}

function commandsText(names: readonly CommandName[] = commandNames): string {
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => `  ncclrun ${name.padEnd(width)}  ${commandTable[name].summary}\n`);
  return `Commands (details: ncclrun help COMMAND)\n${lines.join('')}`;
}

/** Flags, the sentence below them. */
function optionText(option: Option, width: number): string {
  const flags = [...option.flags, ...(option.pairFlags ?? []).map((flag) => `${flag} NAME VALUE`)];
  const [first = '', ...others] = flags;
  const spelled = [`${first}${argumentText(option)}`, ...others].join(', ');
  const environment = option.environment.length === 0 ? '' : ` [${option.environment.join(', ')}]`;
  const sentence = `${option.help}${defaultText(option)}${environment}`;
  return wrapped(spelled, '  ', width) + wrapped(sentence, '        ', width);
}
