/** `ncclrun tune` between hosts: the launcher stores what was measured, and takes it for jobs on such hosts alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseTable } from '../../control/planner/measured/table.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import type { Outcome } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'ncclrun tune on two hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => (cluster = await Cluster.start(3)));
  afterAll(() => cluster[Symbol.asyncDispose]());

  const run = (...words: readonly string[]): Promise<Outcome> =>
    Command.run(words, { cluster, environment: { XDG_CACHE_HOME: join(cluster.state, 'launcher-cache') } });
  const measuring = ['--device', 'host', '-b', '64', '-e', '16K', '-f', '16', '--iters', '10', '--rounds', '2'];
  const job = ['perf', 'all_reduce', '--verbose', '--device', 'host', '-b', '64', '-e', '64', '--check'];

  it('later jobs on two hosts take the table, jobs on three hosts or with more ranks do not', async () => {
    const words = [
      '-H',
      'h1:1,h2:1',
      ...measuring,
      '--collective',
      'all_reduce',
      '--max-spread',
      '100000',
      '--max-load',
      '100',
    ];
    const tuned = await run('tune', ...words);
    expect(tuned.status, tuned.stderr).toBe(0);
    const directory = join(cluster.state, 'launcher-cache/ncclrun/tuning');
    const [name = '', ...others] = readdirSync(directory);
    expect(others).toEqual([]);
    expect(tuned.stdout).toContain(`stored in ${join(directory, name)}: jobs of 2 ranks on 2 such hosts`);
    const { key } = parseTable(readFileSync(join(directory, name), 'utf8'));
    expect(key.between).toMatchObject({ hosts: 2, layout: '2x1', network: 'Socket', isOneMachine: false });
    expect(key.processor).not.toBeNull();

    const taken = async (hosts: string): Promise<boolean> => {
      const { status, stderr } = await run(...job, '-H', hosts);
      expect(status, stderr).toBe(0);
      return stderr.includes(`h[1-2]: the variants of 2 ranks are those of ${join(directory, name)}`);
    };
    expect(await taken('h1:1,h2:1')).toBe(true);
    expect(await taken('h1:1,h2:2')).toBe(false);
    expect(await taken('h1:1,h2:1,h3:1')).toBe(false);
  });
});
