/** Completion for bash. It needs no other package; where bash-completion is there, it is left alone. */
import { commandNames } from '../../model/command-names.ts';
import type { Option } from '../../model/option.ts';
import { bare, entryOf, names, quoted, takes, valueKind } from './model.ts';

export function bashCompletion(): string {
  return `# bash completion for ncclrun; written by: ncclrun completion bash
_ncclrun_flags() {
  case $1 in
${names.map((name) => `    ${name}) echo ${quoted(flagsOf(entryOf(name).line.options).join(' '))} ;;`).join('\n')}
  esac
}

# How an option of a command takes its value: word, attached, pair or nothing.
_ncclrun_takes() {
  case $1:$2 in
${names.map((name) => takesOf(name, entryOf(name).line.options)).join('')}    *) echo nothing ;;
  esac
}

_ncclrun_value() {
  case $1:$2 in
${names.map((name) => valuesOf(name, entryOf(name).line.options)).join('')}  esac
}

_ncclrun_words() {
  case $1 in
${names.map(wordsOf).join('')}  esac
}

_ncclrun() {
  local line=\${COMP_LINE:0:COMP_POINT} typed=\${COMP_WORDS[COMP_CWORD]} command=run at=1 current word flag option='' program='' i
  local -a words
  # bash splits words at = and : too; ours end at blanks.
  read -ra words <<<"$line"
  case $line in *[[:blank:]]) words+=('') ;; esac
  local last=$((\${#words[@]} - 1))
  current=\${words[last]}
  case $typed in [=:]) typed= ;; esac
  if ((last > 1)); then
    case \${words[1]} in ${commandNames.join('|')}) command=\${words[1]} at=2 ;; esac
  fi
  while ((at < last)); do
    word=\${words[at]} flag=\${words[at]#-} flag=\${flag#-}
    if [[ $word == -- || $word == - || $word != -* ]]; then
      if [[ $command == run ]]; then program=yes; break; fi
      at=$((at + 1))
      continue
    fi
    case $flag in
      *=*) at=$((at + 1)) ;;
      *)
        case $(_ncclrun_takes "$command" "$flag") in
          word) at=$((at + 2)); ((at > last)) && option=$flag ;;
          pair) at=$((at + 3)) ;;
          *) at=$((at + 1)) ;;
        esac
        ;;
    esac
  done
  COMPREPLY=()
  if [[ $program ]] || ((at > last)) && [[ ! $option ]]; then return; fi # the shell completes file names
  local kept=''
  if [[ ! $option && $current == -*=* ]]; then
    option=\${current%%=*} option=\${option#-} option=\${option#-} kept=\${current%%=*}= current=\${current#*=}
  fi
  local candidates
  if [[ $option ]]; then
    candidates=$(_ncclrun_value "$command" "$option")
    case $candidates in
      '<file>') mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      '<directory>') mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      '<hosts>') mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") ;;
      *) mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current") ;;
    esac
    case $candidates in '<'*) compopt -o filenames 2>/dev/null ;; esac
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_ncclrun_flags "$command")" -- "$current")
  else
    candidates=$(_ncclrun_words "$command")
    [[ $command == run ]] && ((last > 1)) && candidates=
    mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
    if [[ $command == run && $current ]]; then
      mapfile -t -O \${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$current"; compgen -f -- "$current")
    fi
  fi
  # What bash takes for an earlier word must not be given back.
  local whole
  for i in "\${!COMPREPLY[@]}"; do
    whole=$kept\${COMPREPLY[i]}
    word=\${words[last]}
    COMPREPLY[i]=\${whole#"\${word%"$typed"}"}
    case $whole in *=) compopt -o nospace 2>/dev/null ;; esac
  done
}
complete -o default -o bashdefault -F _ncclrun ncclrun
`;
}

function flagsOf(options: readonly Option[]): string[] {
  return options.flatMap((option) => [...option.flags, ...(option.pairFlags ?? [])]);
}

function patterns(command: string, flags: readonly string[]): string {
  return flags.map((flag) => `${command}:${bare(flag)}`).join('|');
}

function takesOf(command: string, options: readonly Option[]): string {
  const words = options.filter((option) => takes(option) === 'word').flatMap(({ flags }) => flags);
  const pairs = options.flatMap(({ pairFlags = [] }) => pairFlags);
  const lines: (readonly [readonly string[], string])[] = [
    [words, 'word'],
    [pairs, 'pair'],
  ];
  return lines
    .filter(([flags]) => flags.length > 0)
    .map(([flags, how]) => `    ${patterns(command, flags)}) echo ${how} ;;\n`)
    .join('');
}

function valuesOf(command: string, options: readonly Option[]): string {
  const lines = options.map((option) => {
    const kind = valueKind(option);
    if (kind.type === 'unknown') return '';
    const text = kind.type === 'words' ? kind.words.join(' ') : `<${kind.type}>`;
    return `    ${patterns(command, option.flags)}) echo ${quoted(text)} ;;\n`;
  });
  return lines.join('');
}

function wordsOf(name: (typeof names)[number]): string {
  if (name === 'run') return `    run) echo ${quoted(commandNames.join(' '))} ;;\n`;
  const { words } = entryOf(name);
  return words.type === 'choice' ? `    ${name}) echo ${quoted(words.choices.join(' '))} ;;\n` : '';
}
