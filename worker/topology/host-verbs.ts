/** The InfiniBand and RoCE ports by which a host's ranks may reach those of other hosts. */
import { NO_VERBS_DEVICES } from '../../control/messages/nic.ts';
import type { HostVerbs, HostVerbsPort } from '../../control/messages/nic.ts';
import type { Native, VerbsPort } from '../engine/native.ts';
import { readText } from './system-files.ts';
import { kernelCards, speedOf } from './verbs.ts';
import { realPath } from './walk.ts';

/** Of a table with hundreds of entries the rest is for virtual machines. */
const MAX_GIDS = 32;

/** The library is opened where the kernel has cards, or where the user says which library to take. */
export function hostVerbs(native: Pick<Native, 'verbsPorts'>, root = '/'): HostVerbs {
  const cards = kernelCards(root);
  const isNamed = (process.env['NCCL_IBVERBS_LIB'] ?? '') !== '';
  if (cards.length === 0 && !isNamed) return { ports: [], problem: NO_VERBS_DEVICES };
  const found = native.verbsPorts();
  if (typeof found === 'string') return { ports: [], problem: `${found}, though the kernel has ${cards.join(', ')}` };
  const ports = found.filter(({ active }) => active).map((port) => portOf(root, port));
  return { ports, problem: ports.length > 0 ? null : 'no port is active' };
}

function portOf(root: string, one: VerbsPort): HostVerbsPort {
  const { name, port, ethernet, activeMtu, firmware } = one;
  const path = realPath(root, `sys/class/infiniband/${name}/device`);
  return {
    card: name,
    port,
    linkLayer: ethernet ? 'Ethernet' : 'InfiniBand',
    speedMbps: speedOf(root, one),
    mtu: 128 * 2 ** activeMtu,
    pciPath: path === null ? null : `/${path}`,
    firmware,
    gids: one.gids.slice(0, MAX_GIDS).map(({ index, gid }) => ({
      index,
      gid,
      version: versionOf(readText(root, `sys/class/infiniband/${name}/ports/${port}/gid_attrs/types/${index}`)),
    })),
  };
}

/** In a container the file may not be there, nor readable. */
function versionOf(type: string): 1 | 2 | null {
  if (type === 'RoCE v2') return 2;
  return type === 'IB/RoCE v1' ? 1 : null;
}
