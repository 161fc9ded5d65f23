/** `/bin/true` on the hosts of a cluster, ours by --rsh and the peers by their ssh. */
import { join } from 'node:path';
import { type Cluster, repository } from '../../test/rig/cluster.ts';
import type { FigureContext } from '../figure.ts';
import { interleaved, launchMilliseconds } from '../measure.ts';

/** Our command line up to the program. */
export function launchOver(rsh: string, cluster: Cluster, perHost: number): string[] {
  const list = cluster.hosts.map((host) => `${host.name}:${perHost}`).join(',');
  const ranks = String(perHost * cluster.hosts.length);
  return [join(repository, 'bin/ncclrun'), '--rsh', rsh, '-H', list, '-n', ranks];
}

/** Medians in ms: ours, and by name the peers'; one that takes over `limitMs` is ended. */
export async function timesOver(
  rsh: string,
  cluster: Cluster,
  perHost: number,
  limitMs: number,
  { programs, samples }: FigureContext,
) {
  const hosts = cluster.hosts.map((host) => host.name);
  const ours = [...launchOver(rsh, cluster, perHost), '/bin/true'];
  const peers = programs.peers.map((peer) => {
    const theirs = [...peer.launch(perHost * hosts.length, hosts, perHost), '/bin/true'];
    const options = { environment: peer.environment, limitMs, cluster };
    return { name: peer.name, measure: () => launchMilliseconds(theirs, options) };
  });
  const mine = { name: 'ours', measure: () => launchMilliseconds(ours, { cluster }) };
  const { ours: median = null, ...others } = Object.fromEntries(await interleaved([mine, ...peers], samples));
  return { ours: median, peers: others };
}
