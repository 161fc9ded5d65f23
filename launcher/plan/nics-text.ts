/** NICs of a plan for people. */
import { columns } from '../text/columns.ts';
import type { NicView } from './nics.ts';
import type { PlanView, ShapeView } from './view.ts';

/** Nothing for one host, which uses none. */
export function nicsText({ nodes, shapes }: PlanView): string {
  if (nodes === 1 || shapes.every(({ nicTable }) => nicTable.length === 0)) return '';
  const hasGids = shapes.some(({ nicTable }) => nicTable.some(({ gid }) => gid !== null));
  const gidCell = (text: string): string[] => (hasGids ? [text] : []);
  const rows = [['host', 'net', 'NIC', 'port', ...gidCell('GID'), 'Gb/s', 'PCI', 'nearest ranks', 'GPUDirect']];
  shapes.forEach(({ nicTable }, index) => {
    for (const nic of nicTable) {
      const { device, name, portNumber, gid, speedMbps, pci } = nic;
      rows.push([
        `kind ${index}`,
        String(device),
        name,
        portNumber === 0 ? '' : String(portNumber),
        ...gidCell(gid ?? '-'),
        String(speedMbps / 1000),
        pci ?? '-',
        nearest(nic),
        direct(nic),
      ]);
    }
  });
  return `${columns(rows)}\n`;
}

function nearest({ paths }: NicView): string {
  const widest = Math.max(...paths.map(({ bandwidth }) => bandwidth));
  const [first, ...others] = paths.filter(({ bandwidth }) => bandwidth === widest);
  if (first === undefined) return '-';
  const alike = [first, ...others.filter(({ type }) => type === first.type)];
  return `${first.type} ${alike.map(({ rank }) => rank).join(' ')}`;
}

function direct({ gpuDirect, gpuDirectReads, gpuDirectReason }: NicView): string {
  if (gpuDirect.length === 0) return `no: ${gpuDirectReason}`;
  const unread = gpuDirect.filter((rank) => !gpuDirectReads.includes(rank));
  const reads = unread.length === 0 ? '' : `; what ${unread.join(' ')} send is not read there (NCCL_NET_GDR_READ)`;
  return `ranks ${gpuDirect.join(' ')}${reads}`;
}

/** By which NIC each ring comes in and goes out, and why by that one. */
export function channelNicsText(shapes: readonly ShapeView[]): string {
  if (shapes.every(({ ringNics }) => ringNics.length === 0)) return '';
  const rows = [['host', 'ring', '', 'NIC', 'rank', 'path', 'why']];
  shapes.forEach(({ ringNics }, index) => {
    for (const { channel, direction, nic, rank, type, reason } of ringNics)
      rows.push([`kind ${index}`, String(channel), direction, nic, String(rank), type, reason]);
  });
  return `${columns(rows)}\n`;
}
