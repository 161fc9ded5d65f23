/** A job at a terminal, which `script` provides, and in a shell with job control. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { processEntry, withEnvironment } from '../rig/processes.ts';
import { Steering } from '../rig/steering.ts';
import { Terminal, terminalUnavailable } from '../rig/terminal.ts';
import { until } from '../rig/until.ts';

const ncclrun = join(repository, 'bin/ncclrun');
const state = (pid: number): string | undefined => processEntry(pid)?.state;

/** The launcher that runs at this terminal. */
function launcherAt(terminal: Terminal): number {
  const found = withEnvironment(terminal.command.mark).find((entry) =>
    entry.argv.some((word) => word.endsWith('main.cjs')),
  );
  if (found === undefined) throw new Error('no launcher at this terminal');
  return found.pid;
}

describeIf(terminalUnavailable(), 'a job at a terminal', () => {
  it('the line after a prompt has its tag because the typed newline ended the prompt', async () => {
    const job = `${ncclrun} -n 2 sh -c 'if [ $RANK = 0 ]; then printf "name? "; read x; echo hello $x; fi'`;
    await using command = Command.start(['-qec', job, '/dev/null'], {
      program: 'script',
      stdin: 'pipe',
      environment: { NO_COLOR: '1' },
    });
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

  it('^C ends the ranks, and the shell sees status 130', async () => {
    await using terminal = await Terminal.open();
    terminal.type(`${ncclrun} -n 2 sh -c 'echo up $RANK; exec sleep 1000'\n`);
    await terminal.shows('] up ');
    await terminal.shows('] up ');
    terminal.type('\x03');
    await terminal.shows('interrupted; the ranks got SIGINT. ^C again');
    await terminal.shows('ready> ');
    terminal.type('echo status $?\n');
    await terminal.shows('status 130');
  });

  it('^C ends a loop of the shell, too', async () => {
    await using terminal = await Terminal.open();
    terminal.type(`for turn in 1 2; do ${ncclrun} -n 1 sh -c "echo up $turn; exec sleep 1000"; done\n`);
    await terminal.shows('up 1');
    terminal.type('\x03');
    await terminal.shows('interrupted; the ranks got SIGINT. ^C again');
    await terminal.shows('ready> ');
    terminal.type('echo status $?\n');
    await terminal.shows('status 130');
  });

  it('^Z suspends ranks and launcher, and fg resumes them', async () => {
    await using steering = await Steering.open();
    await using terminal = await Terminal.open();
    terminal.type(`${ncclrun} -n 2 ${steering.options.join(' ')} ${steering.program}; echo status $?\n`);
    const ranks = await steering.ranks(2);
    const pids = [launcherAt(terminal), ...ranks.map((rank) => rank.machinePid)];
    terminal.type('\x1a');
    await terminal.shows('Stopped');
    await until('all stopped', () => pids.every((pid) => state(pid) === 'T'));
    terminal.type('fg\n');
    await until('none stopped', () => pids.every((pid) => state(pid) !== 'T'));
    await ranks[0]?.print('back\n');
    await terminal.shows('[0] back');
    await Promise.all(ranks.map((rank) => rank.exit(7)));
    await terminal.shows('with status 7');
  });

  it('a background job does not read the terminal until fg', async () => {
    await using terminal = await Terminal.open();
    terminal.type(`${ncclrun} -n 1 sh -c 'echo be\\gun; read line; echo got $line' &\n`);
    await terminal.shows('begun');
    await terminal.run('echo typed for the shell');
    await terminal.run('jobs');
    expect(state(launcherAt(terminal))).not.toBe('T');
    terminal.type('fg\n');
    await terminal.shows('ncclrun -n 1'); // the shell says what it brings back
    terminal.type('for the rank\n');
    await terminal.shows('got for the rank');
  });

  it('a job that read the terminal does not read it after ^Z and bg', async () => {
    await using terminal = await Terminal.open();
    terminal.type(`${ncclrun} -n 1 sh -c 'read a; echo first $a; read b; echo second $b'\n`);
    terminal.type('one\n');
    await terminal.shows('first one');
    terminal.type('\x1a');
    await terminal.shows('Stopped');
    await terminal.run('bg');
    await terminal.run('echo typed for the shell');
    await terminal.run('jobs');
    expect(state(launcherAt(terminal))).not.toBe('T');
    terminal.type('fg\n');
    await terminal.shows('ncclrun -n 1');
    terminal.type('two\n');
    await terminal.shows('second two');
  });

  it('a closed terminal ends the job, and no process remains', async () => {
    await using steering = await Steering.open();
    await using terminal = await Terminal.open();
    terminal.type(`${ncclrun} -n 2 ${steering.options.join(' ')} ${steering.program}\n`);
    const ranks = await steering.ranks(2);
    await ranks[0]?.spawn('setsid-twice');
    terminal.close();
    await Promise.all(ranks.map((rank) => rank.gone));
    await terminal.command.nothingLeft();
  });
});
