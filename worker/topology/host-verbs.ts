/** The InfiniBand and RoCE ports by which a host's ranks may reach those of other hosts. */
import { NO_VERBS_DEVICES } from '../../control/messages/nic.ts';
import type { FoundVerbs, FoundVerbsPort, HostVerbs } from '../../control/messages/nic.ts';
import type { Native, VerbsPort } from '../engine/native.ts';
import { readText } from './system-files.ts';
import { kernelCards, speedOf } from './verbs.ts';
import { realPath } from './walk.ts';

/** Of a table with hundreds of entries the rest is for virtual machines. */
const MAX_GIDS = 32;

/** The active ports. */
export function hostVerbs(native: Pick<Native, 'verbsPorts'>, root = '/'): HostVerbs {
  const { ports, problem } = foundVerbs(native, root);
  const active = ports.filter(({ state }) => state === ACTIVE).map(({ state: _state, ...port }) => port);
  return { ports: active, problem: problem ?? (active.length > 0 ? null : 'no port is active') };
}

/** All ports. The library is opened where the kernel has cards, or where the user says which library to take. */
export function foundVerbs(native: Pick<Native, 'verbsPorts'>, root = '/'): FoundVerbs {
  const cards = kernelCards(root);
  const isNamed = (process.env['NCCL_IBVERBS_LIB'] ?? '') !== '';
  if (cards.length === 0 && !isNamed) return { ports: [], problem: NO_VERBS_DEVICES };
  const found = native.verbsPorts();
  if (typeof found !== 'string')
    return { ports: found.map((port) => portOf(root, port)), problem: found.length > 0 ? null : 'there are no cards' };
  return { ports: [], problem: cards.length === 0 ? found : `${found}, though the kernel has ${cards.join(', ')}` };
}

const ACTIVE = 'active';

/** The kernel's word where it has the card, else what little the library says. */
function stateOf(root: string, { name, port, active }: VerbsPort): string {
  if (active) return ACTIVE;
  const state = readText(root, `sys/class/infiniband/${name}/ports/${port}/state`).replace(/^\d+: /, '');
  return state === '' ? 'not active' : state.toLowerCase();
}

function portOf(root: string, one: VerbsPort): FoundVerbsPort {
  const { name, port, ethernet, activeMtu, firmware } = one;
  const path = realPath(root, `sys/class/infiniband/${name}/device`);
  return {
    card: name,
    port,
    state: stateOf(root, one),
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
