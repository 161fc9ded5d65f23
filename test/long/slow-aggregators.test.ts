/** Aggregators behind slow cables, of which no interface tells: what jobs take before and after `ncclrun tune` has measured. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import type { Outcome } from '../rig/command.ts';

const SERVER = 'h5';
const ranks = ['h1', 'h2', 'h3', 'h4'];
const words = ['-H', ranks.map((name) => `${name}:1`).join(','), '--collnet-hosts', SERVER, '--device', 'host'];
const BYTES = 2 ** 20;
const IDLE = '--collnet: the ranks reduce without the aggregators: ';

describeIf(clusterUnavailable(), 'four hosts behind slow cables', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(5);
    for (const name of ranks) await cluster.host(name).rate('200mbit');
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const run = (...argv: readonly string[]): Promise<Outcome> =>
    Command.run(argv, { cluster, environment: { XDG_CACHE_HOME: join(cluster.state, 'launcher-cache') } });

  /** All variants of all-reduces of that size. */
  async function tune(): Promise<void> {
    const sizes = ['-b', String(BYTES), '-e', String(BYTES), '--iters', '1', '--rounds', '3'];
    const all = ['--collective', 'all_reduce', '--max-spread', '100000', '--max-load', '100'];
    const { status, stdout, stderr } = await run('tune', ...words, ...sizes, ...all);
    expect(status, stderr).toBe(0);
    expect(stdout).toContain('jobs of 4 ranks on 4 such hosts');
  }

  /** What a host sends for each byte of an all-reduce, and whether the launcher says that the aggregator is idle. */
  async function job(): Promise<{ readonly sent: number; readonly isIdle: boolean }> {
    const sentBy = async (iterations: number): Promise<{ readonly bytes: number; readonly isIdle: boolean }> => {
      const before = await cluster.host('h2').sentBytes();
      const sizes = ['-b', String(BYTES), '-e', String(BYTES), '-w', '0', '--iters', String(iterations), '-c', '1'];
      const { status, stdout, stderr } = await run('perf', 'all_reduce', ...words, ...sizes);
      expect({ status, right: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, right: true });
      return { bytes: (await cluster.host('h2').sentBytes()) - before, isIdle: stderr.includes(IDLE) };
    };
    const [few, more] = [await sentBy(1), await sentBy(3)];
    return { sent: (more.bytes - few.bytes) / (4 * BYTES), isIdle: few.isIdle }; // two more iterations, each in place and not
  }

  it('the aggregator is idle until it was measured to be faster, and idle again once its own cable is slow', async () => {
    const unmeasured = await job();
    expect(unmeasured.isIdle).toBe(true); // its link is like theirs, as far as the interfaces tell
    expect(unmeasured.sent).toBeGreaterThan(1.45); // 2(n-1)/n

    await tune();
    const fast = await job();
    expect(fast.isIdle).toBe(false);
    expect(fast.sent).toBeLessThan(1.1);

    await cluster.host(SERVER).rate('200mbit');
    await tune();
    const slow = await job();
    expect(slow.isIdle).toBe(true);
    expect(slow.sent).toBeGreaterThan(1.45);
  }, 300_000);
});
