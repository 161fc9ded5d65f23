/** The tables of docs/migration.md, one for each tool. */
import type { ForeignOption, ForeignTool } from './foreign-option.ts';

/** Rows for each option: its spellings, and what ncclrun does with them. */
export function toolTable({ command, options }: ForeignTool): string {
  const rows = options.map((option) => [spellings(option), answer(option)].map((cell) => cell.replaceAll('|', '\\|')));
  const all = [[`\`${command}\``, 'ncclrun'], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = all;
  return [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body.map(line)].join('\n');
}

function spellings({ flags, argument, when, whenWords }: ForeignOption): string {
  const value = argument.startsWith('[') ? `[=${argument.slice(1)}` : argument === '' ? '' : ` ${argument}`;
  const [first = '', ...others] = flags;
  const all = [`\`${first}${value}\``, ...others.map((flag) => `\`${flag}\``)].join(', ');
  return when === null ? all : `${all} where ${whenWords ?? conditionOf(argument, when)}`;
}

/** A pattern that is a list of words. */
function conditionOf(argument: string, when: RegExp): string {
  const [name = ''] = argument.replaceAll(/[[\]]/gu, '').split(' ');
  return `${name} is ${when.source.replaceAll(/[\^$()]/gu, '').replaceAll('|', ', ')}`;
}

function answer({ argument, treatment, text }: ForeignOption): string {
  const names = argument.replaceAll(/[[\]]/gu, '').split(' ');
  const named = text.replaceAll(/\{([12])\}/gu, (_place, digit: string) => names[Number(digit) - 1] ?? '');
  switch (treatment) {
    case 'means':
      return named === '' ? 'taken; nothing changes' : `\`${named}\``;
    case 'each':
      return `\`${named}\` for each of the list`;
    case 'exports':
      return `\`${named}\` for each of the list; ALL: \`-x '*'\``;
    case 'ignored':
      return `ignored: ${named}`;
    case 'instead':
      return `refused: ${named}`;
    case 'nodes':
      return '`-n` and `-N`, from this number and that of the ranks';
    case 'module':
      return '`python3 -m` before the next word';
    default:
      return treatment satisfies never;
  }
}
