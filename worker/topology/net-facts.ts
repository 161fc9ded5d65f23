/** The nets that a host has: ports of InfiniBand and RoCE cards or, without any, network interfaces. */
import type { Native } from '../engine/native.ts';
import type { NetFacts } from './facts.ts';
import type { Found } from './gpu-facts.ts';
import { socketNets } from './sockets.ts';
import { kernelCards, verbsNets } from './verbs.ts';

export function netFacts(
  native: Pick<Native, 'verbsPorts'>,
  root: string,
  environment: NodeJS.ProcessEnv,
): Found<NetFacts> {
  const { nets, why } = cards(native, root, environment);
  if (nets.length > 0) return { facts: nets, notes: [] };
  const chosen = environment['NCCL_SOCKET_IFNAME'];
  const facts = socketNets(root, chosen);
  const notes = [`no InfiniBand: ${why}`];
  if (facts.length === 0)
    notes.push(
      chosen === undefined
        ? 'no network: no interface is up but loopback'
        : `no network: NCCL_SOCKET_IFNAME=${chosen} names no interface that is up`,
    );
  return { facts, notes };
}

function cards(
  native: Pick<Native, 'verbsPorts'>,
  root: string,
  environment: NodeJS.ProcessEnv,
): { readonly nets: NetFacts[]; readonly why: string } {
  const { NCCL_IB_DISABLE: disabled, NCCL_NET: wanted = '', NCCL_IB_HCA: chosen } = environment;
  if (disabled !== undefined && Number(disabled) !== 0) return { nets: [], why: `NCCL_IB_DISABLE=${disabled}` };
  if (wanted.toLowerCase() === 'socket') return { nets: [], why: `NCCL_NET=${wanted}` };
  const ports = native.verbsPorts();
  if (typeof ports === 'string') {
    const known = kernelCards(root);
    return { nets: [], why: known.length === 0 ? ports : `${ports}, though the kernel has ${known.join(', ')}` };
  }
  const nets = verbsNets(root, ports, chosen);
  if (nets.length > 0 || ports.length === 0) return { nets, why: 'there are no cards' };
  const active = ports.filter((port) => port.active).length;
  return { nets, why: active === 0 ? 'no port is active' : `NCCL_IB_HCA=${chosen} names no port that is active` };
}
