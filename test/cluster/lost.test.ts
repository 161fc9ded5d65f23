/** Hosts, agents and launchers that go away in the middle of a job: named in seconds, and nothing runs on anywhere. */
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { agentOn, guardianOn, killHard } from '../rig/faults.ts';
import { parseResult } from '../rig/result.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';

interface Running {
  readonly cluster: Cluster;
  readonly command: Command;
  readonly ranks: readonly SteerableRank[];
  readonly lost: ClusterHost;
}

/** A job of one rank on each of three hosts, wired, each with a daemon; h2 is the one that will be lost. */
async function withJob(body: (running: Running) => Promise<void>): Promise<void> {
  await using cluster = await Cluster.start(3);
  await using steering = await Steering.open();
  const argv = ['--json', '-H', 'h1:1,h2:1,h3:1', ...steering.options, steering.program];
  await using command = Command.start(argv, { cluster });
  const ranks = await steering.ranks(3);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.spawn('setsid')));
  await body({ cluster, command, ranks, lost: cluster.host('h2') });
}

async function nothingOn(hosts: readonly ClusterHost[], limitMs: number): Promise<void> {
  for (const host of hosts) await host.empty(limitMs);
}

describeIf(clusterUnavailable(), 'a process or host that is lost during a job', () => {
  it('the launcher names a disconnected host within 10 s, and both sides clean up', async () => {
    await withJob(async ({ cluster, command, lost }) => {
      await lost.cut();
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', host: 'h2', cause: 'silent' });
      await nothingOn(cluster.hosts, 10_000); // the far side ends itself: nobody can tell it to
    });
  });

  it('the launcher names a frozen host within 10 s, and the host cleans up when it thaws', async () => {
    await withJob(async ({ cluster, command, lost }) => {
      await lost.freeze();
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', host: 'h2', cause: 'silent' });
      await nothingOn(
        cluster.hosts.filter((host) => host !== lost),
        10_000,
      );
      await lost.thaw();
      await nothingOn([lost], 10_000);
    });
  });

  it('the launcher names a host that dies within 5 s', async () => {
    await withJob(async ({ cluster, command, lost }) => {
      await lost.kill();
      const { status, stdout } = await command.endedWithin(5000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', host: 'h2' });
      await nothingOn(
        cluster.hosts.filter((host) => host !== lost),
        10_000,
      );
    });
  });

  it('a waiting rank fails when a rank on another host dies', async () => {
    await withJob(async ({ command, ranks }) => {
      const [first, second, third] = ranks;
      const waiting = Promise.allSettled([first?.allReduce(1), third?.allReduce(1)]);
      await second?.kill('SIGKILL');
      const outcomes = await waiting;
      expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected']);
      expect((await command.outcome).status).toBe(137);
    });
  });

  it('no process remains on any host after kill -9 of the launcher', async () => {
    await withJob(async ({ cluster, command }) => {
      killHard(command.pid);
      await command.outcome;
      await nothingOn(cluster.hosts, 10_000);
    });
  });

  it('the launcher names the host whose agent was killed, and no process remains there', async () => {
    await withJob(async ({ cluster, command }) => {
      killHard(agentOn(cluster, 'h2'));
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ host: 'h2' });
      await nothingOn(cluster.hosts, 5000);
    });
  });

  it('the launcher names the host whose guardian was killed, and no process remains there', async () => {
    await withJob(async ({ cluster, command }) => {
      killHard(guardianOn(cluster, 'h2'));
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ host: 'h2', cause: 'guardian-died' });
      await nothingOn(cluster.hosts, 5000);
    });
  });

  it('a launcher that was stopped for too long reports that its hosts gave it up', async () => {
    await withJob(async ({ cluster, command }) => {
      command.signal('SIGSTOP');
      await nothingOn(cluster.hosts, 30_000);
      command.signal('SIGCONT');
      const { status, stdout } = await command.outcome;
      expect(status).toBe(125);
      expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'host-lost', cause: 'launcher-silent' });
    });
  });

  it('^C ends the ranks of all hosts with status 130', async () => {
    await withJob(async ({ cluster, command }) => {
      command.signal('SIGINT');
      expect((await command.endedWithin(5000)).status).toBe(130);
      await nothingOn(cluster.hosts, 10_000);
    });
  });
});
