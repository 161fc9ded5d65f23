/** `ncclrun doctor` over hosts with faults that need no measurement; test/long/doctor.test.ts has the others. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import * as faults from '../rig/host-faults.ts';

const withoutFuse = existsSync('/dev/fuse') ? null : 'there is no /dev/fuse';

describeIf(clusterUnavailable() ?? withoutFuse, 'ncclrun doctor', () => {
  let cluster: Cluster;
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-doctor-'));
    cluster = await Cluster.start(7);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('each planted fault is found on its host with a remedy', async () => {
    await faults.fillSharedMemory(cluster.host('h2'));
    await faults.setClockAhead(cluster.host('h3'), directory);
    await faults.lowerLockedMemory(cluster.host('h4'));
    await faults.forbidPrograms(cluster.host('h5'));
    await faults.shrinkPackets(cluster.host('h6'));
    using background = new DisposableStack();
    background.use(await faults.mountSilence(cluster.host('h7'), directory));

    const { bad, status, text } = await faults.examined(cluster, '--passive');
    const found = (host: string) => bad.filter((finding) => finding.host === host).map(({ check }) => check);
    expect(found('h2'), text).toContain('shared-memory.size');
    expect(found('h3'), text).toContain('time.offset');
    expect(found('h4'), text).toContain('limits.locked-memory');
    expect(found('h5'), text).toContain('files.exec');
    expect(found('h6'), text).toContain('network.mtu');
    expect(found('h7'), text).toContain('files.hang');
    expect(
      bad.every(({ remedy }) => remedy !== null && remedy !== ''),
      text,
    ).toBe(true);
    expect(status).toBe(1);
  });
});
