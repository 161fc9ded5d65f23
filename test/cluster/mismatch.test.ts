/** Ranks of several hosts whose calls differ are told so: by what arrives, and where nothing does by what they wait for. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { mismatches, runFinalize, runMismatch } from '../rig/mismatch.ts';

describeIf(clusterUnavailable(), 'ranks of several hosts whose calls differ', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    directory = await mkdtemp(join(repository, 'build/test-mismatch-'));
    program = await compileWithEngine('test/rig/programs/mismatch.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(['h1:1,h2:1,h3:1', 'h1:2,h2:1'])('ranks on %s name the rank whose call differs', async (hosts) => {
    for (const mismatch of mismatches) {
      const reported = await runMismatch(program, mismatch, ['-H', hosts], cluster);
      // What a rank sends to one that does not wait for it stops nobody: it may be found when the third is forgotten.
      const later =
        mismatch[0] === 'root' ? /at or before the communicator’s collective number \d+: rank \d .*h\d/ : null;
      const third = /collective number 3: rank \d (?:on host |\()h\d.* called /;
      expect(reported.join('\n')).toSatisfy((text: string) => third.test(text) || later?.test(text) === true);
    }
  });

  it.each(['h1:2,h2:1', 'h1:1,h2:2'])('a split on %s names the rank that finalized', async (hosts) => {
    const finalizer = await compileWithEngine('test/rig/programs/finalize.c', directory);
    for (const line of await runFinalize(finalizer, 'split', ['-H', hosts], cluster))
      expect(line).toMatch(/\] 5: .*: rank 2 \(h2\b.*\) called ncclCommFinalize where others called ncclCommSplit/);
  });
});
