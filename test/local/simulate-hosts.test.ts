/** --simulate-hosts: one machine plays several hosts. */
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';

const program = ['sh', '-c', 'echo rank $RANK is rank $LOCAL_RANK of $LOCAL_WORLD_SIZE on host $GROUP_RANK'];

it('ranks are dealt to the hosts in equal shares', async () => {
  const words = ['--simulate-hosts', '2', '-n', '3', '--tag-output=none', ...program];
  const { status, stdout } = await Command.run(words);
  expect(status).toBe(0);
  expect(stdout.trimEnd().split('\n').toSorted()).toEqual([
    'rank 0 is rank 0 of 2 on host 0',
    'rank 1 is rank 1 of 2 on host 0',
    'rank 2 is rank 0 of 1 on host 1',
  ]);
});

it('the hosts are apart: their ranks reach each other by the network', async () => {
  const { status, stdout } = await Command.run(['--simulate-hosts', '3', '-n', '6', 'examples/all-reduce.ts']);
  expect(status).toBe(0);
  expect(stdout).toContain('6 ranks on 3 hosts summed');
});

it.each([
  [['--simulate-hosts', '2', 'true'], /--simulate-hosts 2 deals ranks to hosts, and there is no -n/],
  [['--simulate-hosts', '3', '-n', '2', 'true'], /--simulate-hosts 3, but there are 2 ranks/],
  [['--simulate-hosts', '2', '-n', '2', '-H', 'a', 'true'], /-H and --simulate-hosts both say which hosts there are/],
])('%s is refused', async (words, sentence) => {
  const { status, stderr } = await Command.run(words);
  expect(status).toBe(2);
  expect(stderr).toMatch(sentence);
});
