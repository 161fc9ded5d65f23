/** What the lines mean: only those that are there. */
import type { Survey } from '../survey.ts';
import { svgText, tag } from './markup.ts';
import { textWidth } from './text-width.ts';

const SIZE = 11;
const SAMPLE = 26;

function entries({ cpus, gpus, nets, machine }: Survey): (readonly [className: string, words: string])[] {
  const kinds = new Set(machine.links.map(({ kind }) => kind));
  const all: readonly (readonly [string, string, boolean])[] = [
    ['pci', 'PCI Express', kinds.has('pci') || gpus.length + nets.length > 0],
    ['nvlink', 'NVLink, ×: number of links', kinds.has('nvlink')],
    ['c2c', 'NVLink-C2C', kinds.has('c2c')],
    ['socket', 'between NUMA nodes', cpus.length > 1],
  ];
  return all.flatMap(([className, words, isThere]) => (isThere ? [[className, words] as const] : []));
}

const note = 'GB/s: each way, as NCCL counts them';

export function legendWidth(survey: Survey): number {
  const widths = entries(survey).map(([, words]) => SAMPLE + 8 + textWidth(words, SIZE) + 20);
  return widths.reduce((sum, width) => sum + width, textWidth(note, SIZE));
}

export function drawLegend(survey: Survey, left: number, y: number): string {
  let x = left;
  const parts = entries(survey).map(([className, words]) => {
    const line = tag('path', { d: `M${x + 2} ${y}h${SAMPLE - 4}`, class: className, 'stroke-width': 4 });
    const label = svgText(x + SAMPLE + 8, y, words, { size: SIZE, anchor: 'start', class: 'faint' });
    x += SAMPLE + 8 + Math.ceil(textWidth(words, SIZE)) + 20;
    return line + label;
  });
  return [...parts, svgText(x, y, note, { size: SIZE, anchor: 'start', class: 'faint' })].join('');
}
