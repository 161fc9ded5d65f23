/** Whether `--json` stands among our options, also on a command line that is wrong: whoever asked for an object gets one. */
import type { CommandLine } from '../model/option.ts';
import { findByFlag, findByPairFlag } from '../model/flags.ts';
import { entriesOf, toolsOf } from './foreign/tables.ts';
import { impliedValue } from './split.ts';
import { parseFlag } from '../model/values.ts';

export function jsonAsked(
  argv: readonly string[],
  line: CommandLine,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  let asked = parseFlag(environment['NCCLRUN_JSON'] ?? '') ?? false;
  let unknown = false;
  for (let index = 0; index < argv.length; index++) {
    const [flag = '', attached] = (argv[index] ?? '').split('=', 2);
    if (flag === '--') break;
    if (!flag.startsWith('-') || flag === '-') {
      // What follows an unknown option may be its value.
      if (line.words === 'program' && !unknown) break;
      unknown = false;
      continue;
    }
    const option = findByFlag(flag, line);
    if (option?.name === 'json') asked = parseFlag(attached ?? 'true') ?? true;
    if (findByPairFlag(flag, line) !== null) {
      index += (argv[index + 1] ?? '').includes('=') ? 1 : 2; // NAME=VALUE, or NAME VALUE
      unknown = false;
      continue;
    }
    const foreign = option === null ? valuesOfForeign(flag, line) : null;
    if (foreign !== null) {
      index += Math.max(0, foreign - (attached === undefined ? 0 : 1));
      unknown = false;
      continue;
    }
    unknown = option === null && attached === undefined;
    if (option !== null && attached === undefined && impliedValue(option) === null) {
      const next = argv[index + 1] ?? '';
      if (!next.startsWith('-') || findByFlag(next, line) === null) index += 1;
    }
  }
  return asked;
}

/** How many values an option of another launcher has; null if none has it. */
function valuesOfForeign(flag: string, line: CommandLine): number | null {
  const [entry] = toolsOf(line).flatMap((tools) => entriesOf(flag, tools));
  if (entry === undefined) return null;
  const { argument } = entry.option;
  return argument === '' || argument.startsWith('[') ? 0 : argument.split(' ').length;
}
