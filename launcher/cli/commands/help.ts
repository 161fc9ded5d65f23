/** `ncclrun help [perf]`, `--help`: written from the option table. */
import { standardStreams } from '../../report/standard-streams.ts';
import type { CommandLine, Option } from '../option.ts';
import { perfCommandLine, runCommandLine } from '../options.ts';

interface Head {
  readonly usage: string;
  readonly about: string;
  readonly examples: readonly string[];
}

const heads: Readonly<Record<CommandLine['command'], Head>> = {
  run: {
    usage: 'ncclrun [options] PROGRAM [arguments]',
    about:
      'Starts one worker per slot on many hosts, wires them up for barriers and collectives, and ends them together.',
    examples: ['ncclrun -n 4 examples/all-reduce.ts', 'ncclrun --hostfile hosts -N 8 python3 train.py --lr 0.1'],
  },
  perf: {
    usage: 'ncclrun perf COLLECTIVE [options]',
    about: 'Measures a collective as nccl-tests does. Collectives: all_reduce.',
    examples: ['ncclrun perf all_reduce -n 4 -b 8 -e 64M --check', 'ncclrun perf all_reduce -H node1:4,node2:4 --json'],
  },
};

const groupTitles: readonly (readonly [Option['group'], string])[] = [
  ['measure', 'What to measure'],
  ['ranks', 'Ranks'],
  ['placement', 'Placement'],
  ['hosts', 'Hosts'],
  ['output', 'Output'],
  ['limits', 'Limits'],
  ['other', 'Other'],
];

const runNotes = `Words after PROGRAM are the program's, options too. A first word of perf, help or version is a command of ours; to run a
program of that name write: ncclrun -- perf
Settings come from options, then the environment (in brackets above), ./ncclrun.json, $XDG_CONFIG_HOME/ncclrun/config.json.
Exit status: the program's; 2 usage, 124 --timeout, 125 launch failed, 126 not executable, 127 not found, 128+N signal N.
`;

export async function help(command: CommandLine['command']): Promise<number> {
  await standardStreams().stdout.write(Buffer.from(helpText(command)));
  return 0;
}

export function helpText(command: CommandLine['command']): string {
  const line = command === 'run' ? runCommandLine : perfCommandLine;
  const head = heads[command];
  const groups = groupTitles
    .map(([group, title]) => [title, line.options.filter((option) => option.group === group)] as const)
    .filter(([, options]) => options.length > 0)
    .map(([title, options]) => `${title}\n${options.map(optionText).join('')}`);
  const examples = head.examples.map((example) => `  ${example}\n`).join('');
  const notes = command === 'run' ? `\n${runNotes}` : '';
  return `${examples}\nusage: ${head.usage}\n\n${head.about}\n\n${groups.join('\n')}${notes}`;
}

/** Flags on one line, the sentence below it. */
function optionText(option: Option): string {
  const argument =
    option.argument === ''
      ? ''
      : option.kind.type === 'optional-choice'
        ? `[=${option.argument}]`
        : ` ${option.argument}`;
  const flags = [...option.flags, ...(option.pairFlags ?? []).map((flag) => `${flag} NAME VALUE`)];
  const [first = '', ...others] = flags;
  const spelled = [`${first}${argument}`, ...others].join(', ');
  const standard = option.default === null || option.help.includes('(default') ? '' : ` (default: ${option.default})`;
  const environment = option.environment.length === 0 ? '' : ` [${option.environment.join(', ')}]`;
  return `  ${spelled}\n        ${option.help}${standard}${environment}\n`;
}
