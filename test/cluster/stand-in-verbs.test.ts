/** The stand-in for libibverbs between hosts: those of a cluster share a directory, but neither networks nor processes. */
import { appendFileSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { buildStandInVerbs, standInVerbs } from '../rig/stand-in-verbs.ts';

describeIf(clusterUnavailable(), 'devices of the stand-in on two hosts', () => {
  let program = '';
  let cluster: Cluster | null = null;
  beforeAll(async () => {
    program = buildStandInVerbs('raw_verbs');
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  /** raw_verbs on both hosts, the second of which waits for the first one; `control` is there before they start. */
  async function run(port: number, control: string) {
    if (cluster === null) throw new Error('no cluster');
    const directory = mkdtempSync(join(cluster.state, 'verbs-'));
    appendFileSync(join(directory, 'control'), control);
    const variables = [
      `STAND_IN_VERBS_DIR=${directory}`,
      'STAND_IN_VERBS=device=sia gid=net:eth0',
      'RAW_VERBS_ROUNDS=50',
    ];
    const words = ['env', ...variables, program, standInVerbs, 'sia'];
    return await Promise.allSettled([
      cluster.host('h1').exec(...words, `h2:${port}`),
      cluster.host('h2').exec(...words, String(port)),
    ]);
  }

  it('processes of two hosts write to each other’s memory', async () => {
    const [first, second] = await run(4711, '');
    expect(second).toEqual({ status: 'fulfilled', value: '' });
    expect(first.status === 'fulfilled' ? first.value : first.reason).toMatch(/^( +\d+ B .*\n){7}$/);
  });

  it('a line of control for one host cuts it off: its peer has no answer in time', async () => {
    const [first] = await run(4712, '@h2 port=down\n');
    expect(first.status === 'rejected' ? String(first.reason.stdout) : first.value).toBe('status 12\n');
  });
});
