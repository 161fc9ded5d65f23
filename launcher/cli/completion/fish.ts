/** Completion for fish. */
import { commandNames } from '../../model/command-names.ts';
import { commandTable } from '../command-table.ts';
import type { Option } from '../../model/option.ts';
import { bare, entryOf, names, takes, valueKind } from './model.ts';

export function fishCompletion(): string {
  const withWord = names.map((name) => {
    const flags = entryOf(name).line.options.filter((option) => takes(option) === 'word');
    return `        case ${name}\n            set valued ${flags.flatMap((option) => option.flags.map(bare)).join(' ')}`;
  });
  return `# fish completion for ncclrun; written by: ncclrun completion fish

# Prints the command whose options are wanted, or "program" and the program's words.
function __ncclrun_state
    set -l words (commandline -opc)[2..-1]
    set -l command run
    if contains -- "$words[1]" ${commandNames.join(' ')}
        set command $words[1]
        set words $words[2..-1]
    end
    set -l valued
    switch $command
${withWord.join('\n')}
    end
    while test (count $words) -gt 0
        set -l word $words[1]
        set words $words[2..-1]
        if not string match -qr -- '^-.' $word; or test $word = --
            test $command = run; or continue
            test $word = --; or set words $word $words
            printf '%s\\n' program $words
            return
        end
        set -l flag (string replace -r -- '^--?' '' $word)
        if contains -- $flag $valued
            set words $words[2..-1]
        else if test $flag = genv
            set words $words[3..-1]
        end
    end
    echo $command
end

function __ncclrun_is
    test (__ncclrun_state)[1] = $argv[1]
end

function __ncclrun_program
    set -l state (__ncclrun_state)
    set -l rest (string escape -- $state[2..-1]) (commandline -ct)
    complete -C (string join ' ' -- $rest)
end

# Programs, then files: -F would let fish sort the files among what is to keep its order.
function __ncclrun_programs
    __fish_complete_command
    complete -C "'' "(commandline -ct)
end

complete -c ncclrun -f
complete -c ncclrun -n '__ncclrun_is program' -a '(__ncclrun_program)'
complete -c ncclrun -n '__ncclrun_is run; and not string match -q -- "-*" (commandline -ct)' -k -a '(__ncclrun_programs)'
${fishCommands()}
${names.map(optionsOf).join('\n')}
`;
}

/** -k: in this order, and before the programs and files of the statements above. */
function fishCommands(): string {
  const lines = commandNames.map((name) => `    printf '%s\\t%s\\n' ${name} ${fishQuoted(commandTable[name].summary)}`);
  return `function __ncclrun_commands
${lines.join('\n')}
end
complete -c ncclrun -n __fish_is_first_token -k -a '(__ncclrun_commands)'`;
}

function optionsOf(name: (typeof names)[number]): string {
  const { line, words } = entryOf(name);
  const begin = `complete -c ncclrun -n '__ncclrun_is ${name}'`;
  const lines = line.options.map((option) => `${begin} ${spelt(option)} ${value(option)}-d ${fishQuoted(option.help)}`);
  if (words.type === 'choice') lines.push(`${begin} -k -a ${fishQuoted(words.choices.join(' '))}`);
  if (words.type === 'files') lines.push(`${begin} -F`);
  return lines.join('\n');
}

/** -s for a letter, -o for a word behind one dash, -l behind two. */
function spelt({ flags }: Option): string {
  return flags
    .map((flag) =>
      flag.startsWith('--') ? `-l ${bare(flag)}` : flag.length === 2 ? `-s ${bare(flag)}` : `-o ${bare(flag)}`,
    )
    .join(' ');
}

function value(option: Option): string {
  const how = takes(option);
  if (how === 'nothing') return '';
  const kind = valueKind(option);
  const required = how === 'word' ? '-r ' : '';
  switch (kind.type) {
    case 'file':
      return `${required}-F `;
    case 'directory':
      return `${required}-f -a '(__fish_complete_directories)' `;
    case 'hosts':
      return `${required}-f -a '(__fish_print_hostnames)' `;
    case 'words':
      return `${required}-f -k -a ${fishQuoted(kind.words.join(' '))} `;
    case 'unknown':
      return `${required}-f `;
    default:
      return kind satisfies never;
  }
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
