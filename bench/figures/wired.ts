import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import type { Figure, FigureContext, Row } from '../figure.ts';
import { type Contestant, interleaved, launchMilliseconds } from '../measure.ts';

/** Ranks here, or on each of `cluster`'s hosts: our C program against MPI_Init and MPI_Finalize. */
async function compare(context: FigureContext, ranks: number, cluster: Cluster | null): Promise<Row> {
  const { programs, samples } = context;
  const hosts = cluster?.hosts.map((host) => host.name) ?? [];
  const perHost = hosts.length === 0 ? ranks : ranks / hosts.length;
  const where =
    hosts.length === 0 ? [] : ['--rsh', 'openssh', '-H', hosts.map((host) => `${host}:${perHost}`).join(',')];
  const ours = [join(repository, 'bin/ncclrun'), ...where, '-n', String(ranks), await programs.initBarrier()];
  const contestants: Contestant[] = [{ name: 'ours', measure: () => launchMilliseconds(ours, { cluster }) }];
  for (const peer of programs.peers) {
    const argv = [...peer.launch(ranks, hosts, perHost), await programs.forPeer(peer, 'mpi_init')];
    const options = { environment: peer.environment, cluster, limitMs: 20_000 };
    contestants.push({ name: peer.name, measure: () => launchMilliseconds(argv, options) });
  }
  const { ours: mine = null, ...peers } = Object.fromEntries(await interleaved(contestants, samples));
  const goal = ranks < 8 ? null : ({ kind: 'ratio', factor: 0.5, against: ['openmpi', 'mpich'] } as const);
  return { what: cluster === null ? `n=${ranks}` : `4 × ${perHost} ssh`, unit: 'ms', ours: mine, peers, goal };
}

/** From the start of the command to a communicator of all ranks that passed a barrier, and the end. */
export const wired: Figure = {
  name: 'wired',
  title: 'launch to wired: communicator of all ranks, barrier, end; against MPI_Init + MPI_Finalize',
  unavailable: () => null,
  async *run(context) {
    for (const ranks of [2, 8, 32]) yield await compare(context, ranks, null);
    const reason = clusterUnavailable();
    if (reason !== null) {
      process.stderr.write(`  over ssh skipped: ${reason}\n`);
      return;
    }
    await using cluster = await Cluster.start(4);
    for (const ranks of [4, 16]) yield await compare(context, ranks, cluster);
  },
};
