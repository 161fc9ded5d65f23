/** Aggregators (--collnet): where they run, what hosts send, and what is left when one of them, its agent or its host dies. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { describeIf, clusterUnavailable } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

const SERVER = 'h4';
// The planner takes the server's link for one like the hosts' own, over which ranks alone are faster.
const job = ['-H', 'h1:1,h2:1,h3:1', '--collnet-hosts', SERVER, '-x', 'NCCL_ALGO=allreduce:collnet'];
const names = ['h1', 'h2', 'h3', SERVER];

describeIf(clusterUnavailable(), 'aggregators', () => {
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await Cluster.start(4);
  });
  afterEach(() => cluster[Symbol.asyncDispose]());

  const areEmpty = async (): Promise<void> => {
    for (const name of names) await cluster.host(name).empty();
  };
  const processOf = (program: string): number => {
    const found = cluster
      .host(SERVER)
      .guests()
      .find(({ argv }) => argv.some((word) => word.endsWith(program)));
    if (found === undefined) throw new Error(`${SERVER} runs no ${program}`);
    return found.pid;
  };

  it('each host sends its contribution once, and nothing is left afterwards', async () => {
    const bytes = 8 * 1024 * 1024;
    const sentWith = async (iterations: number): Promise<number> => {
      const before = await cluster.host('h2').sentBytes();
      const words = ['-b', String(bytes), '-e', String(bytes), '-w', '0', '--iters', String(iterations), '-c', '1'];
      const { status, stdout } = await Command.run(['perf', 'all_reduce', ...job, ...words], { cluster });
      expect({ status, right: stdout.includes(' 0 OK') }).toEqual({ status: 0, right: true });
      return (await cluster.host('h2').sentBytes()) - before;
    };
    const [few, more] = [await sentWith(1), await sentWith(3)];
    const factor = (more - few) / (4 * bytes); // two more iterations, each in place and not
    expect(factor).toBeGreaterThan(0.99);
    expect(factor).toBeLessThan(1.05); // a ring sends 4/3
    await areEmpty();
  });

  it('every rank of the job learns that the aggregator was killed', async () => {
    await using steering = await Steering.open();
    await using command = Command.start([...job, ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(3);
    await Promise.all(ranks.map((rank) => rank.init()));
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(1)))).toEqual([[3], [3], [3]]);
    const waiting = ranks.slice(1).map((rank) => rank.allReduce(1).catch((error: unknown) => error));
    process.kill(processOf('ncclrun-aggregator'), 'SIGKILL');
    for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(Error);
    await command.line('stderr', /h4: an aggregator was killed by SIGKILL; communicators that use it fail/u);
    await Promise.all(ranks.map((rank) => rank.exit(1)));
    expect((await command.outcome).status).toBe(1);
    await areEmpty();
  });

  it.each([
    ['is cut off', (host: string) => cluster.host(host).kill()],
    [
      'loses its agent',
      async () => {
        process.kill(processOf('agent.cjs'), 'SIGKILL');
      },
    ],
  ])('the job ends and names the host without ranks that %s', async (_, end) => {
    await using command = Command.start([...job, '--json', 'sh', '-c', 'echo up >&2; exec sleep 1000'], { cluster });
    for (const rank of [0, 1, 2]) await command.line('stderr', new RegExp(`^\\[${rank}\\] up`, 'u'));
    await end(SERVER);
    const { failures } = parseResult((await command.outcome).stdout);
    expect(failures[0]).toMatchObject({ type: 'host-lost', host: SERVER });
    for (const name of ['h1', 'h2', 'h3']) await cluster.host(name).empty();
  });
});
