/** Agents that start agents: with more hosts than --radix, those that are reached reach the others. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LEASE_MS } from '../../launcher/job/order.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, LOGIN_ADDRESS, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { agentOn, killHard } from '../rig/faults.ts';
import { processEntry } from '../rig/processes.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';
import { inFull } from '../rig/whole.ts';

/** With --radix 2: h1 and h2 from the login node, h3 and h5 by way of h1, h4 and h6 of h2, h7 of h3. */
const COUNT = 7;

describeIf(clusterUnavailable(), 'a tree of agents', () => {
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await Cluster.start(COUNT);
  });
  afterEach(() => cluster[Symbol.asyncDispose]());

  const all = Array.from({ length: COUNT }, (_, index) => `h${index + 1}`);
  const hosts = ['-H', all.map((name) => `${name}:1`).join(','), '--radix', '2'];
  /** All hosts have what this ssh needs. */
  const anywhere = (): string[] => [...hosts, '--rsh', join(cluster.ssh.bin, 'ssh')];
  const callers = (): string[][] =>
    all.map((name) =>
      Array.from(
        readFileSync(join(cluster.state, name, 'sshd.log'), 'utf8').matchAll(/Accepted publickey for \S+ from (\S+)/g),
        ([, address]) =>
          address === LOGIN_ADDRESS ? 'login' : (cluster.hosts.find((host) => host.address === address)?.name ?? ''),
      ),
    );
  const clean = async (names: readonly string[], limitMs = 2000): Promise<void> => {
    for (const name of names) await cluster.host(name).empty(limitMs);
  };

  it('the tree carries orders, output and exit statuses', async () => {
    const script = 'seq 2000; echo rank $RANK on $(hostname); exit 0';
    const { status, stdout, stderr } = await Command.run([...anywhere(), '--tag-output=none', 'sh', '-c', script], {
      cluster,
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.split('\n');
    for (const [rank, name] of all.entries()) expect(lines).toContain(`rank ${rank} on ${name}`);
    expect(lines.filter((line) => line === '2000')).toHaveLength(COUNT);
    expect(callers()).toEqual([['login'], ['login'], ['h1'], ['h2'], ['h1'], ['h2'], ['h3']]);
    await clean(all);
  });

  it('the launcher connects to all hosts directly where hosts cannot reach each other', async () => {
    const { status, stdout, stderr } = await Command.run([...hosts, '-v', 'hostname'], { cluster });
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(/h\d: reached from here, since h[12] could not reach it: /),
    });
    expect(stdout.split('\n').toSorted().slice(1)).toEqual(all.map((name, rank) => `[${rank}] ${name}`));
    expect(callers().flat()).toEqual(all.map(() => 'login'));
    await clean(all);
  });

  it('the launcher names a host behind other hosts whose agent does not start', async () => {
    const bundle = join(repository, 'dist/bundle/agent.cjs');
    const program = join(cluster.state, 'stopped.cjs');
    writeFileSync(program, 'process.kill(process.pid, "SIGSTOP")');
    await cluster.host('h7').exec('mount', '--bind', program, bundle);
    const { status, stdout } = await Command.run([...anywhere(), '--json', 'hostname'], { cluster });
    expect(status).toBe(125);
    const message = expect.stringMatching(/did not come up: process \d+ was stopped for 5 s/);
    expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'agent', host: 'h7', message });
    await clean(all, 10_000);
  });

  it('the next attempt reuses the tree', async () => {
    const script =
      '[ $RANK = 6 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; echo up $TORCHELASTIC_RESTART_COUNT';
    const { status, stdout } = await Command.run([...anywhere(), '--max-restarts', '1', 'sh', '-c', script], {
      cluster,
    });
    expect({ status, again: stdout.match(/up 1/g)?.length }).toEqual({ status: 0, again: COUNT });
    expect(callers().map((calls) => calls.length)).toEqual(all.map(() => 1));
    await clean(all);
  });

  const running = async (use: (command: Command) => Promise<void>, ...options: string[]): Promise<void> => {
    const words = [...anywhere(), '--json', ...options, 'sh', '-c', 'echo up >&2; exec sleep 1000'];
    await using command = Command.start(words, { cluster });
    for (const rank of all.keys()) await command.line('stderr', new RegExp(`^\\[${rank}\\] up`));
    await use(command);
  };

  it('the launcher names an inner agent that was killed, and no process remains', () =>
    running(async (command) => {
      killHard(agentOn(cluster, 'h1'));
      const { status, stdout } = await command.outcome;
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', host: 'h1' });
      await clean(all, 8000);
    }));

  it('the launcher names the host that becomes silent and not the hosts behind it', () =>
    running(async (command) => {
      await cluster.host('h1').cut();
      const { status, stdout } = await command.outcome;
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', host: 'h1', cause: 'silent' });
      await clean(all, 12_000);
    }));

  it.each(inFull(['the launcher names a silent host behind other hosts']))('%s', () =>
    running(async (command) => {
      process.kill(agentOn(cluster, 'h7'), 'SIGSTOP');
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures).toMatchObject([{ type: 'host-lost', host: 'h7', cause: 'silent' }]);
      await clean(all, 8000); // the stopped agent too, by its warden
    }),
  );

  it.each(inFull(['the job continues without a frozen inner host and the hosts behind it']))('%s', () =>
    running(
      async (command) => {
        await cluster.host('h3').freeze();
        await command.line('stderr', /h3 is lost/);
        await command.line('stderr', /5 ranks go on without it/);
        await clean(['h7'], 8000); // behind h3
        for (const name of ['h1', 'h2', 'h4', 'h5', 'h6'])
          expect(cluster.host(name).guests(), name).toContainEqual(
            expect.objectContaining({ argv: ['sleep', '1000'] }),
          );
        command.signal('SIGTERM');
        expect((await command.outcome).status).toBe(143);
        await cluster.host('h3').thaw();
        await clean(all, 8000);
      },
      '--on-failure',
      'shrink',
    ),
  );

  it('all hosts end within a lease when the launcher is stopped, and the launcher reports it when it resumes', () =>
    running(async (command) => {
      command.signal('SIGSTOP');
      await clean(all, 10_000);
      command.signal('SIGCONT');
      const { status, stdout } = await command.outcome;
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', cause: 'launcher-silent' });
    }));

  it.each(inFull(['all hosts end within a lease even when the job has restarts left']))('%s', () =>
    running(
      async (command) => {
        command.signal('SIGSTOP');
        await clean(all, 10_000);
        killHard(command.pid);
        await command.outcome;
      },
      '--max-restarts',
      '1',
    ),
  );

  it.each(inFull(['the tree survives ^Z for longer than a lease']))('%s', () =>
    running(async (command) => {
      command.signal('SIGTSTP');
      await until('it has stopped', () => processEntry(command.pid)?.state === 'T');
      await delay(2 * LEASE_MS); // a lease that is not suspended runs out
      command.signal('SIGCONT');
      await delay(LEASE_MS);
      command.signal('SIGINT');
      expect((await command.outcome).status).toBe(130);
      await clean(all);
    }),
  );

  it.each(inFull(['the tree ends on ^C and when the launcher dies']))('%s', async () => {
    await running(async (command) => {
      command.signal('SIGINT');
      expect((await command.outcome).status).toBe(130);
      await clean(all);
    });
    await running(async (command) => {
      killHard(command.pid);
      await command.outcome;
      await clean(all, 8000);
    });
  });
});
