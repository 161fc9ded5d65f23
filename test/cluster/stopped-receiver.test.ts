/** A rank that is stopped while its peer on another host sends to it or waits for it: NCCLRUN_NET_TIMEOUT ends the wait. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { partsOn } from '../rig/faults.ts';
import { processEntry } from '../rig/processes.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

const TIMEOUT_SECONDS = 2;
/** More than the sockets' buffers and the slots of a connection hold: 16 MB. */
const MANY = Array.from({ length: 4_000_000 }, () => 1);
const LOST =
  /lost the connection with rank 1 on host h2.*: it at 10\.77\.0\.12 port \d+, reached from 10\.77\.0\.11 \(eth0\), has sent no heartbeat for 2 s \(NCCLRUN_NET_TIMEOUT\).*its process is stopped/;

const isStopped = (pid: number): boolean => processEntry(pid)?.state === 'T';

/** Both ranks, which have exchanged something. */
async function joined(steering: Steering): Promise<[SteerableRank, SteerableRank]> {
  const [first, second] = await steering.ranks(2);
  if (first === undefined || second === undefined) throw new Error('there are not two ranks');
  await Promise.all([first.init(), second.init()]);
  await Promise.all([first.allReduce(1), second.allReduce(2)]);
  return [first, second];
}

/** Resolves with what lets it go on. */
async function stop(rank: SteerableRank): Promise<() => void> {
  const pid = rank.machinePid;
  process.kill(pid, 'SIGSTOP');
  await until('the rank is stopped', () => isStopped(pid));
  return () => process.kill(pid, 'SIGCONT');
}

describeIf(clusterUnavailable(), 'a rank that is stopped', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  function start(steering: Steering): Command {
    const timeout = ['-x', `NCCLRUN_NET_TIMEOUT=${TIMEOUT_SECONDS}`];
    return Command.start(['-H', 'h1:1,h2:1', ...timeout, ...steering.options, steering.program], { cluster });
  }

  it.each<readonly [string, (rank: SteerableRank) => Promise<unknown>]>([
    ['a send that fills all buffers', (rank) => rank.tell({ do: 'send', to: 1, values: MANY })],
    ['a receive', (rank) => rank.receive(1, 1)],
    ['a small collective', (rank) => rank.allReduce(1)],
    ['a large collective', (rank) => rank.allReduce(...MANY.slice(0, 100_000))],
  ])('%s with it ends with its rank, host and address', async (_what, call) => {
    await using steering = await Steering.open();
    await using _ = start(steering);
    const [first, second] = await joined(steering);
    const proceed = await stop(second);
    try {
      await expect(call(first)).rejects.toThrow(LOST);
    } finally {
      proceed();
    }
  });

  it('each of several communicators ends with it', async () => {
    await using steering = await Steering.open();
    await using _ = start(steering);
    const [first, second] = await joined(steering);
    await Promise.all([first.tell({ do: 'split' }), second.tell({ do: 'split' })]);
    const proceed = await stop(second);
    try {
      await expect(first.allReduce(1)).rejects.toThrow(LOST);
      await expect(first.tell({ do: 'send', to: 1, values: [1] })).rejects.toThrow(LOST);
    } finally {
      proceed();
    }
  });

  it('ranks that have nothing to say for longer than NCCLRUN_NET_TIMEOUT stay connected', async () => {
    await using steering = await Steering.open();
    await using _ = start(steering);
    const [first, second] = await joined(steering);
    const since = performance.now();
    await until('the timeout has passed', () => performance.now() - since > 2 * TIMEOUT_SECONDS * 1000, 10_000);
    expect(await Promise.all([first.allReduce(1), second.allReduce(2)])).toEqual([[3], [3]]);
  });

  it('a job that was suspended for longer than NCCLRUN_NET_TIMEOUT goes on', async () => {
    await using steering = await Steering.open();
    await using command = start(steering);
    const [first, second] = await joined(steering);
    for (const host of cluster.hosts) await until('one rank is there', () => partsOn(host, 'rank').length === 1);
    const ranks = cluster.hosts.flatMap((host) => partsOn(host, 'rank').map(({ pid }) => pid));
    const received = first.receive(1, 1);
    command.signal('SIGTSTP');
    await until('the ranks are stopped', () => ranks.every(isStopped), 10_000);
    const since = performance.now();
    await until('the timeout has passed', () => performance.now() - since > 2 * TIMEOUT_SECONDS * 1000, 10_000);
    command.signal('SIGCONT');
    await second.tell({ do: 'send', to: 0, values: [7] });
    expect(await received).toEqual([7]);
    expect(await Promise.all([first.allReduce(1), second.allReduce(2)])).toEqual([[3], [3]]);
  });
});
