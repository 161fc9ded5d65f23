/** The line of what is going on: on a terminal, which `script` provides, and nowhere else. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const noScript = spawnSync('script', ['--version']).status === 0 ? null : 'script (util-linux) is not installed';
const erase = '\r\u001B[K';

/** What a terminal gets to see of a job. */
async function shown(job: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await Command.run(['-qec', `${join(repository, 'bin/ncclrun')} ${job}`, '/dev/null'], {
    program: 'script',
    environment: { TERM: 'xterm', NO_COLOR: '1', ...environment },
  });
  return stdout;
}

describeIf(noScript, 'the live line at a terminal', () => {
  it('the live line counts the running ranks and disappears at the end', async () => {
    const text = await shown("-n 2 sh -c 'sleep 1; echo done'");
    expect(text).toContain(`${erase}2 ranks running, 0 s`);
    const screen = text.split(/\r\n/u).map((line) => line.slice(line.lastIndexOf(erase) + 1).replace('\u001B[K', ''));
    expect(screen.toSorted()).toEqual(['', '[0] done', '[1] done']);
  });

  it.each<[string, string, NodeJS.ProcessEnv]>([
    ['--live never', '--live never', {}],
    ['TERM=dumb', '', { TERM: 'dumb' }],
    ['--json', '--json', {}],
    ['a pipe at stderr', '2>&1 >/dev/null | cat; :', {}],
  ])('the live line is absent with %s', async (_name, options, environment) => {
    const job = options.startsWith('2') ? `-n 2 sleep 1 ${options}` : `${options} -n 2 sleep 1`;
    expect(await shown(job, environment)).not.toContain('running');
  });

  it('rank tags are dim unless NO_COLOR is set', async () => {
    expect(await shown('-n 2 echo x', { NO_COLOR: '' })).toContain('\u001B[2m[1]\u001B[22m x');
    expect(await shown('-n 2 echo x')).toContain('[1] x');
  });
});

it('rank tags in a pipe are plain unless FORCE_COLOR is set', async () => {
  expect((await Command.run(['-n', '2', 'echo', 'x'])).stdout).toContain('[1] x');
  const { stdout } = await Command.run(['-n', '2', 'echo', 'x'], { environment: { FORCE_COLOR: '1' } });
  expect(stdout).toContain('\u001B[2m[1]\u001B[22m x');
});
