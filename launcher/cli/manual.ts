/** The manual page, in the macros of man(7), written from the tables. */
import { commandNames } from '../model/command-names.ts';
import { commandTable, type CommandEntry, runEntry } from './command-table.ts';
import type { Option } from '../model/option.ts';
import { argumentText, defaultText, groupsOf } from './option-groups.ts';

const statuses: readonly (readonly [string, string])[] = [
  ['0', 'every rank ended with 0'],
  ["the rank's", 'of the first rank that failed by itself; 128+N if it died of signal N'],
  ['2', 'the command line, a settings file, a hostfile or the number of ranks is wrong; nothing was started'],
  ['124', '--timeout, --spawn-timeout or --init-timeout ran out'],
  ['125', 'a host could not be reached or was lost, or ncclrun itself failed'],
  ['126, 127', 'the program is not executable, was not found'],
  ['130, 143', 'you ended it with ^C, with SIGTERM'],
];

export function manualPage(version: string): string {
  const { options } = runEntry.line;
  const commands = commandNames.map((name) => commandTable[name]);
  return [
    `.TH NCCLRUN 1 "" ${quoted(`ncclrun ${version}`)} "User Commands"`,
    '.SH NAME',
    'ncclrun \\- start a worker per GPU on many hosts and wire the workers up for collectives',
    '.SH SYNOPSIS',
    ...[runEntry, ...commands].flatMap(({ usage }, index) => [...(index === 0 ? [] : ['.br']), synopsis(usage)]),
    '.SH DESCRIPTION',
    escaped(runEntry.about),
    '.PP',
    escaped("The first word that is not an option begins the program; everything after it is the program's, as typed."),
    escaped('To run a program that has the name of a command of ours, write -- before it.'),
    '.SH EXAMPLES',
    ...example(runEntry),
    '.SH OPTIONS',
    ...optionLines(options),
    '.SH COMMANDS',
    ...commands.flatMap(commandLines),
    '.SH ENVIRONMENT',
    'A variable stands for the option of the same name. The command line overrides it.',
    ...options.flatMap(({ environment, flags: [flag = ''] }) =>
      environment.flatMap((name) => ['.TP', bold(name), escaped(`as ${flag}`)]),
    ),
    '.SH FILES',
    'Each holds one JSON object whose keys are the long names of options; the environment overrides them.',
    ...['./ncclrun.json', '$XDG_CONFIG_HOME/ncclrun/config.json']
      .flatMap((path) => ['.TP', italic(path)])
      .concat([escaped('(without XDG_CONFIG_HOME: ~/.config/ncclrun/config.json); weaker than the former')]),
    '.SH EXIT STATUS',
    ...statuses.flatMap(([status, meaning]) => ['.TP', bold(status), escaped(meaning)]),
    '.SH SEE ALSO',
    '.BR mpirun (1),',
    '.BR ssh (1)',
    '',
  ].join('\n');
}

function synopsis(usage: string): string {
  const [program = '', ...rest] = usage.split(' ');
  return `\\fB${program}\\fR ${escaped(rest.join(' '))}`;
}

function commandLines(entry: CommandEntry): string[] {
  const ofJobs = new Map<string, string>(runEntry.line.options.map(({ name, help }) => [name, help]));
  const own = entry.line.options.filter(({ name, help }) => name !== 'help' && ofJobs.get(name) !== help);
  return ['.SS', escaped(entry.usage), escaped(entry.about), ...own.flatMap(optionText), ...example(entry)];
}

function example({ examples }: CommandEntry): string[] {
  return ['.PP', '.nf', '.RS', ...examples.map(escaped), '.RE', '.fi'];
}

function optionLines(options: readonly Option[]): string[] {
  return groupsOf(options).flatMap((group) => ['.SS', escaped(group.title), ...group.options.flatMap(optionText)]);
}

function optionText(option: Option): string[] {
  const pairs = (option.pairFlags ?? []).map((flag) => `${bold(flag)} \\fINAME VALUE\\fR`);
  const [first = '', ...others] = option.flags.map(bold);
  const argument = argumentText(option) === '' ? '' : `\\fI${escaped(argumentText(option))}\\fR`;
  return [
    '.TP',
    [`${first}${argument}`, ...others, ...pairs].join(', '),
    escaped(`${option.help}${defaultText(option)}`),
  ];
}

function bold(text: string): string {
  return `\\fB${escaped(text)}\\fR`;
}

function italic(text: string): string {
  return `\\fI${escaped(text)}\\fR`;
}

function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', '\\(dq')}"`;
}

/** Text that troff prints as it is: no line of it is a command, and dashes, quotes and carets can be copied and typed. */
function escaped(text: string): string {
  const safe = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll(
      /\P{ASCII}/gu,
      (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
  return safe.startsWith('.') ? `\\&${safe}` : safe;
}
