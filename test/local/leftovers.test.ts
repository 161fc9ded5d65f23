/** Nothing outlives its job, whoever is taken away and however well its processes hide. */
import { existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { killHard, localGuardian, localWarden } from '../rig/faults.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

/** The states of a process's threads, as /proc has them. */
function threadStates(pid: number): string[] {
  const read = (task: string): string => readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8');
  return readdirSync(`/proc/${pid}/task`).map((task) => /\) (\S)/.exec(read(task))?.[1] ?? '');
}

const hidings = ['child', 'setsid', 'double-fork', 'setsid-twice'] as const;

/** Every rank starts one process in each of the ways to hide. */
async function withHiddenProcesses(
  ranks: number,
  body: (command: Command, steering: Steering) => Promise<void>,
): Promise<void> {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', String(ranks), ...steering.options, steering.program]);
  const all = await steering.ranks(ranks);
  await Promise.all(all.flatMap((rank) => hidings.map((how) => rank.spawn(how))));
  const hidden = () => command.survivors().filter((entry) => entry.argv[0] === 'sleep');
  await until('all hidden processes run', () => hidden().length === ranks * hidings.length);
  await body(command, steering);
}

/** Where the rank's agent has its socket and other small files. */
async function runtimeDirectoryOf(rank: SteerableRank): Promise<string> {
  const directory = dirname((await rank.environment('NCCLRUN_AGENT')) ?? '');
  expect(existsSync(directory)).toBe(true);
  return directory;
}

describe('children, daemons and setsid grandchildren of ranks', () => {
  it('no process remains after a rank failed', async () => {
    await withHiddenProcesses(2, async (command, steering) => {
      const directory = await runtimeDirectoryOf(await steering.rank(0));
      await (await steering.rank(1)).exit(1);
      expect((await command.outcome).status).toBe(1);
      await command.nothingLeft(0);
      expect(existsSync(directory)).toBe(false);
    });
  });

  it('no process remains after every rank exited with 0', async () => {
    await withHiddenProcesses(2, async (command, steering) => {
      for (const rank of await steering.ranks(2)) await rank.exit(0);
      expect((await command.outcome).status).toBe(0);
      await command.nothingLeft(0);
    });
  });

  it('no process remains after ^C', async () => {
    await withHiddenProcesses(2, async (command) => {
      command.signal('SIGINT');
      expect((await command.outcome).status).toBe(130);
      await command.nothingLeft(0);
    });
  });

  it('no process remains after kill -9 of the launcher', async () => {
    await withHiddenProcesses(3, async (command, steering) => {
      const directory = await runtimeDirectoryOf(await steering.rank(0));
      killHard(command.pid);
      expect(await command.nothingLeft(2000)).toBeLessThan(2000);
      expect(existsSync(directory)).toBe(false);
    });
  });

  it('no process remains after kill -9 of the guardian, which the launcher reports', async () => {
    await withHiddenProcesses(3, async (command) => {
      killHard(localGuardian(command));
      const { status, stderr } = await command.outcome;
      expect(status).toBe(125);
      expect(stderr).toMatch(/guardian/);
      await command.nothingLeft(0);
    });
  });

  it('no process remains after kill -9 of launcher and guardian', async () => {
    await withHiddenProcesses(2, async (command, steering) => {
      const guardian = localGuardian(command);
      const ranks = await steering.ranks(2);
      killHard(guardian);
      killHard(command.pid);
      await Promise.all(ranks.map((rank) => rank.gone));
      await command.nothingLeft(2000);
    });
  });
});

describe('the runtime directory of a job whose launcher, warden and guardian were killed', () => {
  it('a later job removes the directory and keeps that of a running job', async () => {
    await using doomed = await Steering.open();
    await using lasting = await Steering.open();
    await using killed = Command.start(['-n', '1', ...doomed.options, doomed.program]);
    await using living = Command.start(['-n', '2', ...lasting.options, lasting.program]);
    const [rank, ranks] = [await doomed.rank(0), await lasting.ranks(2)];
    const [left, used] = [await runtimeDirectoryOf(rank), await runtimeDirectoryOf(ranks[0] ?? rank)];
    // Stopped, the launcher cannot find its guardian gone and tidy up itself.
    process.kill(killed.pid, 'SIGSTOP');
    await until('all its threads are stopped', () => threadStates(killed.pid).every((state) => state === 'T'));
    const guardian = localGuardian(killed);
    // Nor may the guardian tidy up when it finds its warden gone.
    process.kill(guardian, 'SIGSTOP');
    await until('the guardian is stopped', () => threadStates(guardian).every((state) => state === 'T'));
    killHard(localWarden(killed));
    killHard(guardian);
    killHard(killed.pid);
    await rank.gone;
    const thatLasts = ['-n', '1', 'sleep', '1.5'];
    expect((await Command.run(thatLasts)).status).toBe(0);
    expect([left, used].map((path) => existsSync(path))).toEqual([true, true]); // it may be about to begin
    const long = new Date(Date.now() - 2 * 3600 * 1000);
    for (const path of [left, used]) utimesSync(path, long, long);
    expect((await Command.run(thatLasts)).status).toBe(0);
    expect([left, used].map((path) => existsSync(path))).toEqual([false, true]);
    expect(await Promise.all(ranks.map((one) => one.init()))).toHaveLength(2);
    await Promise.all(ranks.map((one) => one.exit(0)));
    expect((await living.outcome).status).toBe(0);
  });
});

describe('two jobs at once', () => {
  it('two jobs at once do not disturb each other when one crashes', async () => {
    await using first = await Steering.open();
    await using second = await Steering.open();
    await using one = Command.start(['-n', '2', ...first.options, first.program]);
    await using two = Command.start(['-n', '2', ...second.options, second.program]);
    const [firsts, seconds] = await Promise.all([first.ranks(2), second.ranks(2)]);
    await Promise.all([...firsts, ...seconds].map((rank) => rank.init()));
    await firsts[0]?.kill('SIGSEGV');
    expect((await one.outcome).status).toBe(139);
    await one.nothingLeft(0);
    const sums = await Promise.all(seconds.map((rank) => rank.allReduce(1, 2, rank.rank)));
    expect(sums).toEqual([
      [2, 4, 1],
      [2, 4, 1],
    ]);
    for (const rank of seconds) await rank.exit(0);
    expect((await two.outcome).status).toBe(0);
  });
});

const times = Number(process.env['NCCLRUN_TEST_REPEAT'] ?? 40);
// A job that hangs ends by its own --timeout and is told of; the limit of the whole is for a busy machine.
it('a job of 32 ranks that exit at once never hangs', { timeout: times * 1000 + 30_000 }, async () => {
  for (let round = 0; round < times; round++) {
    const { status, stderr } = await Command.run(['-n', '32', '--timeout', '20', '/bin/true']);
    expect({ round, status, stderr }).toEqual({ round, status: 0, stderr: '' });
  }
});
