/** A host whose network dies while its processes live: its peers' calls end, as NCCLRUN_NET_TIMEOUT says. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

const TIMEOUT_SECONDS = 2;

describeIf(clusterUnavailable(), 'a network that carries nothing more between two hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('a receive ends with ncclRemoteError and names the peer and the timeout', async () => {
    await using steering = await Steering.open();
    const timeout = ['-x', `NCCLRUN_NET_TIMEOUT=${TIMEOUT_SECONDS}`];
    const argv = ['-H', 'h1:1,h2:1', ...timeout, ...steering.options, steering.program];
    await using _ = Command.start(argv, { cluster });
    const ranks = await steering.ranks(2);
    const [first] = ranks;
    if (first === undefined) throw new Error('no rank 0');
    await Promise.all(ranks.map((rank) => rank.init()));
    await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)));
    const { address } = cluster.host('h2');
    // The login host, where the launcher is, reaches both.
    await cluster.host('h1').exec('iptables', '-I', 'OUTPUT', '-d', address, '-j', 'DROP');
    await cluster.host('h1').exec('iptables', '-I', 'INPUT', '-s', address, '-j', 'DROP');
    await expect(first.receive(1, 1)).rejects.toThrow(
      new RegExp(
        `lost the connection with rank 1 on host h2: its host at 10.77.0.12 port .*, reached from 10.77.0.11 .eth0., has not answered for ${TIMEOUT_SECONDS} s`,
      ),
    );
  });
});
