/** A job at a terminal, which `script` provides. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const missing = spawnSync('script', ['--version']).status === 0 ? null : 'script (util-linux) is not installed';

describeIf(missing, 'at a terminal', () => {
  it('the line after a prompt has its prefix: the newline that was typed ended the prompt', async () => {
    const job = `${join(repository, 'bin/ncclrun')} -n 2 sh -c 'if [ $RANK = 0 ]; then printf "name? "; read x; echo hello $x; fi'`;
    await using command = Command.start(['-qec', job, '/dev/null'], { program: 'script', stdin: 'pipe' });
    let shown = '';
    await new Promise<void>((resolve) => {
      command.process.stdout?.on('data', (bytes: Buffer) => {
        shown += bytes.toString();
        if (shown.includes('name? ')) resolve();
      });
    });
    command.process.stdin?.write('bob\n');
    const { status, stdout } = await command.outcome;
    expect(stdout).toBe('[0] name? bob\r\n[0] hello bob\r\n');
    expect(status).toBe(0);
  });
});
