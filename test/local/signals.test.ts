/** What each signal to ncclrun does, as the user who sends it sees it. */
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { processEntry } from '../rig/processes.ts';
import { Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

describe('--forward-signals', () => {
  it.each([
    ['SIGUSR2', []],
    ['SIGUSR1', ['--forward-signals', 'usr1']],
    ['SIGWINCH', ['--forward-signals', 'SIGUSR1,WINCH']],
    ['SIGALRM', ['--forward-signals', '14']],
  ] as const)('%s with %j reaches every rank, and the job continues', async (signal, options) => {
    await using steering = await Steering.open();
    await using command = Command.start([...options, '-n', '2', ...steering.options, steering.program]);
    const ranks = await steering.ranks(2);
    const arrived = Promise.all(ranks.map((rank) => rank.tell({ do: 'awaitSignal', signal })));
    for (const rank of [0, 1]) await command.line('stderr', new RegExp(`^\\[${rank}\\].*rank waits for ${signal}`));
    command.signal(signal);
    expect(await arrived).toEqual([signal, signal]);
    await Promise.all(ranks.map((rank) => rank.exit(0)));
    expect((await command.outcome).status).toBe(0);
  });

  it.each(['SIGUSR1', 'SIGUSR2'] as const)('--forward-signals none keeps %s from the ranks', async (signal) => {
    await using steering = await Steering.open();
    const argv = ['--forward-signals', 'none', '-n', '1', ...steering.options, steering.program];
    await using command = Command.start(argv);
    const rank = await steering.rank(0); // the signal would end it
    command.signal(signal);
    await command.line('stderr', new RegExp(`got ${signal}; it is not passed on`));
    await rank.exit(0);
    expect((await command.outcome).status).toBe(0);
  });

  it.each([
    ['USR3', 'did you mean USR1?'],
    ['SIGWINHC', 'did you mean WINCH?'],
    ['nnoe', 'did you mean none?'],
    ['99', 'there is no signal "99"'],
    ['TERM', 'it ends the job, and the ranks get it anyway'],
    ['9', 'SIGKILL cannot be passed on: no program can see it coming'],
    ['CHLD', 'it speaks of ncclrun’s own process'],
    ['USR1,', 'there is no signal ""'],
  ])('--forward-signals rejects %s', async (list, words) => {
    const { status, stdout, stderr } = await Command.run(['--forward-signals', list, 'echo', 'started']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(words);
  });
});

describe('^C', () => {
  it('each ^C announces the effect of the next one, and ranks that ignore signals are killed after --grace', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--grace', '0.2', '-n', '1', ...steering.options, steering.program]);
    const rank = await steering.rank(0);
    await rank.tell({ do: 'ignore', signals: ['SIGINT', 'SIGTERM'] });
    command.signal('SIGINT');
    await command.line(
      'stderr',
      /interrupted; the ranks got SIGINT. \^C again: SIGTERM, and SIGKILL 0.2 s later; a third time: leave/,
    );
    command.signal('SIGINT');
    await command.line('stderr', /the ranks got SIGTERM, SIGKILL follows in 0.2 s; \^C again: leave at once/);
    expect((await command.outcome).status).toBe(130);
    await command.nothingLeft(0);
  });

  it('the launcher exits at the third ^C, and no process remains', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--grace', '1000', '-n', '2', ...steering.options, steering.program]);
    const ranks = await steering.ranks(2);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'ignore', signals: ['SIGINT', 'SIGTERM'] })));
    for (const words of [/interrupted/, /got SIGTERM/, /left at once/]) {
      command.signal('SIGINT');
      await command.line('stderr', words);
    }
    expect((await command.outcome).status).toBe(130);
    await command.nothingLeft();
  });

  it('the launcher exits at the third ^C although nobody reads its output', async () => {
    await using command = Command.start(['--grace', '1000', '-n', '2', 'sh', '-c', 'trap "" INT TERM; yes']);
    await command.line('stdout', /y/);
    command.process.stdout?.pause();
    for (const words of [/interrupted/, /got SIGTERM/, /left at once/]) {
      command.signal('SIGINT');
      await command.line('stderr', words);
    }
    await new Promise((resolve) => command.process.once('exit', resolve));
    expect(command.process.signalCode).toBe('SIGINT');
    command.process.stdout?.resume();
    await command.nothingLeft();
  });

  it('^C does not prolong the grace period after a failure', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--grace', '1', '-n', '2', ...steering.options, steering.program]);
    const [first, second] = await steering.ranks(2);
    await second?.tell({ do: 'ignore', signals: ['SIGINT', 'SIGTERM'] });
    await first?.exit(3);
    await command.line('stderr', /rank 0 .*exited with status 3/);
    command.signal('SIGINT');
    expect((await command.outcome).status).toBe(3);
    await command.nothingLeft(0);
  });
});

describe('^Z', () => {
  it('SIGTSTP suspends the ranks and the launcher, and SIGCONT resumes them', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
    const ranks = await steering.ranks(2);
    const pids = [command.pid, ...ranks.map((rank) => rank.machinePid)];
    command.signal('SIGTSTP');
    await until('all stopped', () => pids.every((pid) => processEntry(pid)?.state === 'T'));
    command.signal('SIGCONT');
    await until('none stopped', () => pids.every((pid) => processEntry(pid)?.state !== 'T'));
    await Promise.all(ranks.map((rank) => rank.exit(0)));
    expect((await command.outcome).status).toBe(0);
  });

  it('SIGTSTP suspends only the launcher if TSTP is not forwarded', async () => {
    await using steering = await Steering.open();
    const argv = ['--forward-signals', 'none', '-n', '1', ...steering.options, steering.program];
    await using command = Command.start(argv);
    const rank = await steering.rank(0);
    command.signal('SIGTSTP');
    await until('ncclrun stopped', () => processEntry(command.pid)?.state === 'T');
    expect(await rank.environment('RANK')).toBe('0'); // it answers: it runs
    command.signal('SIGCONT');
    await rank.exit(0);
    expect((await command.outcome).status).toBe(0);
  });
});

describe('SIGHUP', () => {
  it('SIGHUP ends the job with 129', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--json', '-n', '2', ...steering.options, steering.program]);
    await steering.ranks(2);
    command.signal('SIGHUP');
    const { status, stdout } = await command.outcome;
    expect(status).toBe(129);
    expect(JSON.parse(stdout)).toMatchObject({ reason: 'interrupt', failures: [{ signal: 'SIGHUP' }] });
    await command.nothingLeft(0);
  });

  it('SIGHUP has no effect under nohup, and the ranks see no trace of it', async () => {
    await using steering = await Steering.open();
    const argv = ['bin/ncclrun', '-n', '1', ...steering.options, steering.program];
    await using command = Command.start(argv, { program: 'nohup' });
    const rank = await steering.rank(0);
    command.signal('SIGHUP');
    expect(await rank.environment('NCCLRUN_NOHUP')).toBe(null);
    await rank.exit(5);
    expect((await command.outcome).status).toBe(5);
  });
});

describe('a reader that closes its pipe', () => {
  it.each([
    ['stdout', 'yes', '| head -1'],
    ['stderr', 'yes >&2', '2>&1 >/dev/null | head -1'],
  ])('a closed %s ends the job silently with 141', async (_, program, pipe) => {
    const script = `bin/ncclrun -n 2 sh -c '${program}' ${pipe}; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = await Command.run(['-c', script], { program: 'bash' });
    expect(stdout).toMatch(/^\[[01]\] y\n141\n$/);
    expect(stderr).toBe('');
  });

  it.each(['>&-', '2>&-', '>&- 2>&- <&-', '>/dev/full 2>&-'])(
    'streams redirected with %s do not crash the launcher',
    async (redirection) => {
      const script = `bin/ncclrun -n 2 sh -c 'exit $((3 * RANK))' ${redirection}; echo $? >&3`;
      const { stdout } = await Command.run(['-c', `exec 3>&1; ${script}`], { program: 'bash' });
      expect(stdout).toBe('3\n');
    },
  );
});
