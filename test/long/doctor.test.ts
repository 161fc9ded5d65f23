/** `ncclrun doctor` with what it measures: nothing is said of hosts that are well, and each fault is named on its host, and nothing else. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import * as faults from '../rig/host-faults.ts';

const ROUNDS = 20;
const withoutFuse = existsSync('/dev/fuse') ? null : 'there is no /dev/fuse';

describeIf(clusterUnavailable() ?? withoutFuse, 'ncclrun doctor', () => {
  let cluster: Cluster;
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-doctor-'));
    cluster = await Cluster.start(11);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('hosts that are well have no complaint, however often they are looked at', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { bad, status, text } = await faults.examined(cluster, '--quick');
      expect(bad, text).toEqual([]);
      expect(status).toBe(0);
    }
  });

  it('doctor --full puts load on halves of the hosts, verifies their data, and finds nothing wrong', async () => {
    const { bad, status, text } = await faults.examined(cluster, '--full');
    expect(bad, text).toEqual([]);
    expect(status).toBe(0);
  });

  it('each planted fault is found on its host, and nothing else', async () => {
    await faults.fillSharedMemory(cluster.host('h2'));
    await cluster.host('h3').rate('100mbit');
    await cluster.host('h4').loss(0.01);
    await faults.setClockAhead(cluster.host('h5'), directory);
    await faults.lowerLockedMemory(cluster.host('h6'));
    await faults.forbidPrograms(cluster.host('h7'));
    await faults.shrinkPackets(cluster.host('h8'));
    await faults.installOtherVersion(cluster.host('h11'), directory);
    using background = new DisposableStack();
    const loop = ['sh', '-c', 'echo busy; while :; do :; done'];
    background.use(await faults.inBackground(cluster.host('h9'), ...loop));
    background.use(await faults.mountSilence(cluster.host('h10'), directory));

    const { bad, text } = await faults.examined(cluster);
    const found = (host: string | null) => bad.filter((finding) => finding.host === host).map(({ check }) => check);
    expect([found(null), found('h1')], text).toEqual([[], []]);
    expect(found('h2'), text).toEqual(['shared-memory.size']);
    expect(found('h3'), text).toContain('network.bandwidth');
    expect(found('h4'), text).toContain('network.loss');
    for (const host of ['h3', 'h4'])
      expect(
        found(host).filter((check) => !check.startsWith('network.')),
        text,
      ).toEqual([]);
    expect(found('h5'), text).toEqual(['time.offset']);
    expect(found('h6'), text).toEqual(['limits.locked-memory']);
    expect(found('h7'), text).toEqual(['files.exec']);
    expect(found('h8'), text).toEqual(['network.mtu']);
    expect(found('h9'), text).toEqual(['cpu.load']);
    expect(found('h10'), text).toEqual(['files.hang']);
    expect(found('h11'), text).toEqual(['host.reached']);
    expect(bad.find(({ host }) => host === 'h11')?.message).toContain('ncclrun 0.0.1 is installed');
  });
});
