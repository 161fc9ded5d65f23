/** A GPU's NVLinks in the tree: a row for those that lead to equal ends over equally many links. */
import type { GpuPart, Nvlinks } from './part.ts';
import type { TopologyRow } from './text.ts';
import { counted } from '../text/counted.ts';
import { different, gigabytes, gpuList } from '../text/gpu-words.ts';

export function nvlinkRows(gpu: GpuPart, lead: string): TopologyRow[] {
  const rows = [...switchRow(gpu), ...gpuRows(gpu), ...otherRows(gpu)];
  if (gpu.c2c !== null) rows.push(row('to its processor', 'C2C', gpu.c2c));
  return rows.map((one) => ({ ...one, lead }));
}

function row(about: string, link: string, bandwidth: number): TopologyRow {
  return { lead: '', name: '', about, link, rate: gigabytes(bandwidth) };
}

/** All switches of a machine act as one. */
function switchRow({ nvlinks }: GpuPart): TopologyRow[] {
  const links = nvlinks.filter(({ to }) => to.type === 'nvswitch');
  if (links.length === 0) return [];
  const what = links.length > 1 ? `to ${counted(links.length, 'NVSwitch').replace(/s$/u, 'es')}` : 'to NVSwitch';
  return [row(what, `NVLink x${count(links)}`, bandwidth(links))];
}

function gpuRows({ index, nvlinks }: GpuPart): TopologyRow[] {
  const links = nvlinks.flatMap((link) => (link.to.type === 'gpu' ? [{ ...link, gpu: link.to.index }] : []));
  const others = links.filter(({ gpu }) => gpu !== index);
  const counts = different(others.map((link) => link.count)).toSorted((one, other) => other - one);
  const rows = counts.map((wanted) => {
    const group = others.filter((link) => link.count === wanted);
    const each = group.length > 1 ? ', to each' : '';
    return row(`to ${gpuList(group.map(({ gpu }) => gpu))}${each}`, `NVLink x${wanted}`, group[0]?.bandwidth ?? 0);
  });
  const own = links.filter(({ gpu }) => gpu === index);
  return own.length === 0 ? rows : [...rows, row('to itself', `NVLink x${count(own)}`, bandwidth(own))];
}

function otherRows({ nvlinks }: GpuPart): TopologyRow[] {
  return nvlinks.flatMap((link) => {
    const { to, busId } = link;
    if (to.type !== 'cpu' && to.type !== 'absent') return [];
    const about = to.type === 'cpu' ? 'to its processor' : `to ${busId}, which is not there`;
    return [row(about, `NVLink x${link.count}`, link.bandwidth)];
  });
}

export function count(links: readonly Nvlinks[]): number {
  return links.reduce((sum, link) => sum + link.count, 0);
}

export function bandwidth(links: readonly Nvlinks[]): number {
  return links.reduce((sum, link) => sum + link.bandwidth, 0);
}
