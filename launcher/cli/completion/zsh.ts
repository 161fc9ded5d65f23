/** Completion for zsh, by its own _arguments. */
import { commandNames } from '../../model/command-names.ts';
import { commandTable } from '../command-table.ts';
import type { Option } from '../../model/option.ts';
import { entryOf, names, quoted, takes, valueKind } from './model.ts';

export function zshCompletion(): string {
  return `#compdef ncclrun
# zsh completion for ncclrun; written by: ncclrun completion zsh
_ncclrun_commands() {
  local -a commands=(
${commandNames.map((name) => `    ${quoted(`${name}:${commandTable[name].summary}`)}`).join('\n')}
  )
  _describe -t commands 'ncclrun command' commands
}

_ncclrun_program() {
  (( CURRENT == 1 )) && [[ $_ncclrun_first == yes ]] && _ncclrun_commands
  if (( CURRENT == 1 )); then _command_names -e; _files; else _normal; fi
}

_ncclrun() {
  local _ncclrun_first=no
  (( CURRENT == 2 )) && _ncclrun_first=yes
  case \${words[2]} in
${commandNames.map(branch).join('')}  esac
  _arguments -S \\
${entryOf('run').line.options.flatMap(specifications).join(' \\\n')} \\
    '(-)*:: :_ncclrun_program'
}

# Loaded by compinit from a directory of $fpath, or by: eval "$(ncclrun completion zsh)"
if [[ \${funcstack[1]} == _ncclrun ]]; then _ncclrun "$@"; else compdef _ncclrun ncclrun; fi
`;
}

function branch(name: (typeof names)[number]): string {
  const { line, words } = entryOf(name);
  const own =
    words.type === 'choice'
      ? [`'1: :(${words.choices.join(' ')})'`]
      : words.type === 'files'
        ? [`'*:file:_files'`]
        : [];
  const specs = [...line.options.flatMap(specifications), ...own.map((text) => `    ${text}`)];
  return `    ${name})
      if (( CURRENT > 2 )); then
        shift words
        (( CURRENT-- ))
        _arguments -S \\
${specs.map((text) => `      ${text}`).join(' \\\n')}
        return
      fi
      ;;
`;
}

/** A specification per flag: zsh's exclusion list keeps it from offering an option's other names afterwards. */
function specifications(option: Option): string[] {
  const help = option.help.replaceAll(/[[\]\\:]/gu, (character) => `\\${character}`);
  const how = takes(option);
  const again = option.kind.type === 'list' ? '*' : `(${option.flags.join(' ')})`;
  const single = option.flags.map((flag) => {
    const attach = how === 'attached' ? '=-' : how === 'word' && flag.startsWith('--') ? '=' : '';
    const value = how === 'nothing' ? '' : `${how === 'attached' ? '::' : ':'}${option.name}:${action(option)}`;
    return `    ${quoted(`${again}${flag}${attach}[${help}]${value}`)}`;
  });
  const pairs = (option.pairFlags ?? []).map((flag) => `    ${quoted(`*${flag}[${help}]:name: :value: `)}`);
  return [...single, ...pairs];
}

function action(option: Option): string {
  const kind = valueKind(option);
  switch (kind.type) {
    case 'file':
      return '_files';
    case 'directory':
      return '_files -/';
    case 'hosts':
      return '_hosts';
    case 'words':
      return `(${kind.words.join(' ')})`;
    case 'unknown':
      return ' ';
    default:
      return kind satisfies never;
  }
}
