import { expect, it } from 'vitest';
import { batchScript } from '../../launcher/slurm/script.ts';

const script = (options: readonly string[], words: readonly string[] = ['./app']): string[] =>
  batchScript({ options, command: '/opt/ncclrun/bin/ncclrun', words, name: 'app' }).trimEnd().split('\n');

it('the script contains each sbatch option on a line with its value', () => {
  expect(script(['--nodes', '4', '-N4', '--time=1:00', '--exclusive', '-p', 'long'])).toEqual([
    '#!/bin/bash',
    '#SBATCH --job-name=app',
    '#SBATCH --nodes 4',
    '#SBATCH -N4',
    '#SBATCH --time=1:00',
    '#SBATCH --exclusive',
    '#SBATCH -p long',
    '',
    expect.stringMatching(/^# /),
    'exec /opt/ncclrun/bin/ncclrun ./app',
  ]);
});

it('a value without an option has a line of its own, which sbatch refuses', () => {
  expect(script(['4', '--exclusive']).slice(2, 4)).toEqual(['#SBATCH 4', '#SBATCH --exclusive']);
});

it.each([[['-J', 'mine']], [['-Jmine']], [['--job-name=mine']], [['--job-name', 'mine']]])(
  'the script keeps the job name of %j',
  (options) => {
    expect(script(options).filter((line) => line.includes('job-name=app'))).toEqual([]);
  },
);

it('the script asks for no signal by itself', () => {
  expect(script(['--time=1']).filter((line) => /^#SBATCH .*signal/.test(line))).toEqual([]);
});

it('the script keeps the given --signal', () => {
  expect(script(['--signal=TERM@30']).filter((line) => line.startsWith('#SBATCH --signal'))).toEqual([
    '#SBATCH --signal=TERM@30',
  ]);
});

it('the script quotes words that a shell or sbatch would split', () => {
  const lines = script(['--comment', 'a "b" # c'], ['sh', '-c', "echo it's $RANK"]);
  expect(lines).toContain('#SBATCH --comment "a \\"b\\" # c"');
  expect(lines.at(-1)).toBe(`exec /opt/ncclrun/bin/ncclrun sh -c 'echo it'\\''s $RANK'`);
});
