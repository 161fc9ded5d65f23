/**
 * Whom a job blames when a rank's failure is heard of after that of a rank on another host that failed because of it. The agent of the first
 * is stopped meanwhile, so the news always come in that order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { JobResult } from '../../launcher/model/types.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { agentOn, guardianOn } from '../rig/faults.ts';
import { parseResult } from '../rig/result.ts';
import { Steering, type SteerableRank } from '../rig/steering.ts';

interface Running {
  readonly cluster: Cluster;
  readonly command: Command;
  readonly ranks: readonly SteerableRank[];
}

type Result = JobResult & { readonly outcome: Outcome };

/** A job of so many ranks on h1, h2…, wired; resolves with its result. */
async function withJob(slots: readonly number[], body: (running: Running) => Promise<void>): Promise<Result> {
  await using cluster = await Cluster.start(slots.length);
  await using steering = await Steering.open();
  const hosts = cluster.hosts.map(({ name }, index) => `${name}:${slots[index]}`).join(',');
  const argv = ['--json', '-v', '-H', hosts, ...steering.options, steering.program];
  await using command = Command.start(argv, { cluster });
  const ranks = await steering.ranks(slots.reduce((sum, count) => sum + count));
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  await body({ cluster, command, ranks });
  const outcome = await command.outcome;
  return { ...parseResult(outcome.stdout), outcome };
}

/** The launcher has heard how the rank ended. */
async function receivedFrom(command: Command, rank: number): Promise<void> {
  await command.line('stderr', new RegExp(`rank ${rank} on h\\d: ended`));
}

type Action = (rank: SteerableRank) => Promise<unknown>;
const nothing: Action = () => Promise.resolve();
/** An agent that does not wait for its guardian has spoken by then. */
const pause: Action = () => delay(200);
const leave: Action = (rank) => rank.tell({ do: 'close' });

/**
 * Rank 0 does its act; rank 1 fails for it (what it does before it exits is given), and the launcher hears of that alone before anything
 * comes from the process of h1 that is `silent`.
 */
function whileUnheard(action: Action, before = nothing, silent = agentOn): Promise<Result> {
  return withJob([1, 1], async ({ cluster, command, ranks: [first, second] }) => {
    const agent = silent(cluster, 'h1');
    process.kill(agent, 'SIGSTOP');
    if (first !== undefined) await action(first);
    await expect(second?.allReduce(1)).rejects.toThrow(/rank 0/);
    if (second !== undefined) await before(second);
    await second?.exit(1);
    await receivedFrom(command, 1);
    process.kill(agent, 'SIGCONT');
  });
}

describeIf(clusterUnavailable(), 'the verdict when the exit report of the failing rank arrives late', () => {
  it('the verdict names a rank that SIGKILL ended', async () => {
    const { exitCode, failures } = await whileUnheard((rank) => rank.kill('SIGKILL'));
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 137,
      failures: [{ type: 'rank-signal', rank: 0, host: 'h1' }, { rank: 1 }],
    });
  });

  it('the verdict names a killed rank whose guardian reports late', async () => {
    const { exitCode, failures } = await whileUnheard((rank) => rank.kill('SIGKILL'), pause, guardianOn);
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 137,
      failures: [{ type: 'rank-signal', rank: 0, host: 'h1' }, { rank: 1 }],
    });
  });

  it('the verdict names a killed rank when its peer left the communicator before it failed', async () => {
    const { exitCode, failures } = await whileUnheard((rank) => rank.kill('SIGKILL'), leave);
    expect({ exitCode, failures }).toMatchObject({ exitCode: 137, failures: [{ rank: 0 }, { rank: 1 }] });
  });

  it('the job exits with the exit status of the rank that failed first', async () => {
    const { exitCode, failures } = await whileUnheard((rank) => rank.exit(7));
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 7,
      failures: [{ type: 'rank-exit', rank: 0 }, { rank: 1 }],
    });
  });

  it('the verdict names a rank that exited with 0 while its peer waited', async () => {
    const { exitCode, failures, outcome } = await whileUnheard((rank) => rank.exit(0));
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 125,
      failures: [{ type: 'rank-missing', rank: 0, host: 'h1' }, { rank: 1 }],
    });
    expect(outcome.stderr).toMatch(
      /^ncclrun: rank 0 \(h1, pid \d+\) (exited with status 0|ended) without leaving the communicator; others waited for it$/m,
    );
  });

  it('the verdict names a rank that aborted the communicator and keeps running', async () => {
    const { exitCode, failures, outcome } = await whileUnheard((rank) => rank.tell({ do: 'abort' }));
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 125,
      failures: [{ type: 'rank-missing', rank: 0 }, { rank: 1 }],
    });
    expect(outcome.stderr).toMatch(/^ncclrun: rank 0 \(h1, pid \d+\) aborted the communicator: the test says so$/m);
  });

  it.each([[[1, 1, 1]], [[1, 2]]])(
    'the verdict names the first failure of a chain (%j ranks per host)',
    async (slots) => {
      const { failures } = await withJob(slots, async ({ cluster, command, ranks: [first, second, third] }) => {
        const agent = agentOn(cluster, 'h1');
        process.kill(agent, 'SIGSTOP');
        await first?.kill('SIGSEGV');
        await expect(second?.allReduce(1)).rejects.toThrow(/rank 0/);
        await second?.exit(1);
        await expect(third?.allReduce(1)).rejects.toThrow(/rank [01]/);
        await third?.exit(2);
        await receivedFrom(command, 1);
        await receivedFrom(command, 2);
        process.kill(agent, 'SIGCONT');
      });
      expect(failures[0]).toMatchObject({ type: 'rank-signal', rank: 0, signal: 'SIGSEGV' });
    },
  );

  it('the verdict names the lost host of the rank that failed first', async () => {
    const { exitCode, failures } = await withJob([1, 1], async ({ cluster, command, ranks: [first, second] }) => {
      process.kill(agentOn(cluster, 'h1'), 'SIGSTOP');
      await first?.kill('SIGKILL');
      await expect(second?.allReduce(1)).rejects.toThrow(/rank 0/);
      await second?.exit(1);
      await receivedFrom(command, 1);
    });
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 125,
      // The host's guardian, too, hears nothing of the agent, and may be the first to end it.
      failures: [
        { type: 'host-lost', host: 'h1', cause: expect.stringMatching(/^(silent|link-closed)$/) },
        { rank: 1 },
      ],
    });
  });

  it('the verdict names the rank that failed when only the connection to its living peer broke', async () => {
    const { exitCode, failures } = await withJob([1, 1], async ({ cluster, ranks: [, second] }) => {
      const refuse = ['-d', cluster.host('h1').address, '-p', 'tcp', '-j', 'REJECT', '--reject-with', 'tcp-reset'];
      await cluster.host('h2').exec('iptables', '-I', 'OUTPUT', ...refuse);
      await expect(second?.allReduce(1)).rejects.toThrow(/rank 0/);
      await second?.exit(3);
    });
    expect({ exitCode, failures: [failures[0]] }).toMatchObject({
      exitCode: 3,
      failures: [{ type: 'rank-exit', rank: 1, host: 'h2' }],
    });
  });
});
