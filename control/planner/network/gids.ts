/** Chooses the GID by which others reach an InfiniBand or RoCE port. */
import type { HostGid, HostVerbsPort } from '../../messages/nic.ts';
import { UnplannableError } from '../input/check.ts';
import type { Environment } from '../input/variables.ts';
import { anyNumber, valueOf, wholeNumber } from '../input/variables.ts';
import { isLinkLocal, isWithin, parseSubnet } from './addresses.ts';
import type { Subnet } from './addresses.ts';

/**
 * The GID by which others reach the port. InfiniBand has one for all purposes, and for networks of several subnets whose routers know FLIDs
 * another. RoCE has several for each address: the version that routers pass on before the other, an address of the wanted family before a
 * link-local one. As NCCL chooses them (its documentation: NCCL_IB_GID_INDEX and the variables beside it).
 */
export function gidOf({ linkLayer, gids }: HostVerbsPort, environment: Environment): HostGid | null {
  const at = (index: number): HostGid | null => gids.find((one) => one.index === index) ?? null;
  const given = anyNumber(environment, 'NCCL_IB_GID_INDEX') ?? -1;
  if (given >= 0) return at(given);
  if (linkLayer === 'InfiniBand') {
    const routable = wholeNumber(environment, 'NCCL_IB_ROUTABLE_FLID_GID_INDEX', 0, 255) ?? 1;
    const other = at(routable);
    return other !== null && hasFlid(other.gid) ? other : at(0);
  }
  const version = wholeNumber(environment, 'NCCL_IB_ROCE_VERSION_NUM', 1, 2) ?? 2;
  const family = familyOf(environment);
  const range = rangeOf(environment, family);
  const ranked = gids
    .filter(({ gid }) => range === null || isWithin(withoutMapping(gid), range))
    .map((gid) => ({ gid, worth: worthOf(gid, version, family) }))
    .toSorted((one, other) => other.worth - one.worth);
  return ranked[0]?.gid ?? null;
}

/** By which the user chooses among them. */
export const GID_VARIABLES = 'NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE and NCCL_IB_ROCE_VERSION_NUM';

/** "10.0.0.1" of the GID "::ffff:10.0.0.1". */
function withoutMapping(gid: string): string {
  return gid.replace(/^::ffff:/iu, '');
}

/** NCCL_IB_ADDR_RANGE: "10.1.0.0/16", of the wanted family; null: any address will do. */
function rangeOf(environment: Environment, family: Family): Subnet | null {
  const text = valueOf(environment, 'NCCL_IB_ADDR_RANGE');
  if (text === null) return null;
  const range = parseSubnet(text);
  if (range === null)
    throw new UnplannableError(`NCCL_IB_ADDR_RANGE=${text}: a range like 10.1.0.0/16 or fd00::/64 is wanted`);
  if (range.bits === 0) return null;
  if (range.family === family) return range;
  throw new UnplannableError(
    `NCCL_IB_ADDR_RANGE=${text}: NCCL_IB_ADDR_FAMILY wants addresses of IPv${family}; set it to ${family === 4 ? 'AF_INET6' : 'AF_INET'}`,
  );
}

type Family = 4 | 6;
function familyOf(environment: Environment): Family {
  const text = valueOf(environment, 'NCCL_IB_ADDR_FAMILY') ?? 'AF_INET';
  if (text === 'AF_INET') return 4;
  if (text === 'AF_INET6') return 6;
  throw new UnplannableError(`NCCL_IB_ADDR_FAMILY=${text}: AF_INET or AF_INET6 is wanted`);
}

function worthOf({ gid, version }: HostVerbsPort['gids'][number], wantedVersion: number, wantedFamily: Family): number {
  const address = withoutMapping(gid);
  const family: Family = address === gid ? 6 : 4;
  const isWanted = version === null || version === wantedVersion;
  return (isLinkLocal(address) ? 0 : 4) + (isWanted ? 2 : 0) + (family === wantedFamily ? 1 : 0);
}

/** Its third group of digits is the number of a subnet's router (FLID), and not 0. */
function hasFlid(gid: string): boolean {
  const [before = ''] = gid.split('::');
  return Number.parseInt(before.split(':')[2] ?? '0', 16) !== 0;
}
