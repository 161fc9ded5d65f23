/** What a demand lacks, in words. */
import { counted } from '../../text/counted.ts';
import type { Demand } from '../model/spec.ts';
import type { Lack, Resource } from './lack.ts';

const GIBIBYTE = 1024 ** 3;
const MEBIBYTE = 1024 ** 2;

/** `wants 16 slots on 2 hosts; the largest 2 have 12`. `when`: whether it never fits, or not now. */
export function lackText(lack: Lack, when: 'ever' | 'now'): string {
  const free = when === 'now' ? ' free' : '';
  switch (lack.kind) {
    case 'contradiction':
      return contradictionText(lack.demand);
    case 'hosts':
      return `wants ${counted(lack.wanted, 'host')}; ${lack.allowed} of those it allows ${are(lack.allowed)} there`;
    case 'whole':
      return `wants ${counted(lack.hosts, 'host')} for itself; ${lack.idle} ${are(lack.idle)} idle`;
    case 'each': {
      const { of, wanted, hosts, fitting } = lack;
      const where = hosts === 1 ? 'one host' : `each of ${hosts} hosts`;
      const who = fitting === 0 ? 'no host has' : `${counted(fitting, 'host')} ${have(fitting)}`;
      return `wants ${amountText(wanted, of)} on ${where}; ${who} so ${of === 'memory' ? 'much' : 'many'}${free}`;
    }
    case 'sum': {
      const { of, wanted, hosts, found, among } = lack;
      const where = hosts === null ? '' : ` on ${counted(hosts, 'host')}`;
      const who = among === 1 ? 'the only host has' : `the ${among} hosts have`;
      const largest = among === 1 ? 'the largest has' : `the largest ${among} have`;
      return `wants ${amountText(wanted, of)}${where}; ${hosts === null ? who : largest} ${found}${free}`;
    }
    default:
      return unknownLack(lack);
  }
}

function contradictionText({ ranks, nodes, ranksPerNode }: Demand): string {
  const each = ranksPerNode === null ? '' : ` with ${ranksPerNode} on each`;
  const hosts = nodes === null ? ' on any number of hosts' : ` on ${counted(nodes, 'host')}`;
  return `wants ${counted(ranks, 'rank')}${hosts}${each}, which does not add up`;
}

function amountText(amount: number, of: Resource): string {
  switch (of) {
    case 'memory':
      return `${memoryText(amount)} of memory`;
    case 'ranks':
      return `room for ${counted(amount, 'rank')}`;
    case 'slots':
      return counted(amount, 'slot');
    case 'processors':
      return counted(amount, 'processor');
    default:
      return unknownLack(of);
  }
}

function memoryText(bytes: number): string {
  if (bytes >= GIBIBYTE) return `${Number((bytes / GIBIBYTE).toFixed(1))} GiB`;
  return `${Number((bytes / MEBIBYTE).toFixed(1))} MiB`;
}

function are(count: number): string {
  return count === 1 ? 'is' : 'are';
}

function have(count: number): string {
  return count === 1 ? 'has' : 'have';
}

function unknownLack(lack: never): never {
  throw new TypeError(`a lack of unknown kind: ${JSON.stringify(lack)}`);
}
