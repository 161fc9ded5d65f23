/** A batch script for Slurm that runs ncclrun in place of itself: its signals reach ncclrun, and its status is the job's. */
import { directiveWord, shellWord } from './words.ts';

interface BatchScript {
  /** Options of sbatch as typed: `--nodes 4`, `-N4`, `--time=1:00:00`. */
  readonly options: readonly string[];
  /** ncclrun's path. */
  readonly command: string;
  /** Its options, the program and its arguments. */
  readonly words: readonly string[];
  /** What the job is called where the options do not say it. */
  readonly name: string;
}

export function batchScript({ options, command, words, name }: BatchScript): string {
  const lines = directives(options);
  if (!gives(lines, ['-J', '--job-name'])) lines.unshift(`--job-name=${directiveWord(name)}`);
  return [
    '#!/bin/bash',
    ...lines.map((line) => `#SBATCH ${line}`),
    '',
    '# ncclrun takes hosts, tasks and GPUs from the allocation. With --signal=B:USR1@60 its ranks get SIGUSR1 60 s ahead of the time limit.',
    `exec ${[command, ...words].map(shellWord).join(' ')}`,
    '',
  ].join('\n');
}

/** An option to a line, with its value. */
function directives(options: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of options) {
    const last = lines.length - 1;
    if (word.startsWith('-') || last === -1) lines.push(directiveWord(word));
    else lines[last] = `${lines[last] ?? ''} ${directiveWord(word)}`;
  }
  return lines;
}

function gives(lines: readonly string[], flags: readonly string[]): boolean {
  return lines.some((line) =>
    flags.some(
      (flag) =>
        line === flag || line.startsWith(flag.startsWith('--') ? `${flag}=` : flag) || line.startsWith(`${flag} `),
    ),
  );
}
