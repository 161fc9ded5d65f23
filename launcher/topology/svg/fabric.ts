/** NVLinks, below the GPUs: a bar for the switches, which all reach, and what there is between GPUs. */
import { bandwidth, count } from '../nvlink-text.ts';
import { different, gigabytes } from '../../text/gpu-words.ts';
import { label, svgGroup, svgText, tag } from './markup.ts';
import { drawMesh, stroke } from './mesh.ts';
import type { Drawing, PlacedGpu } from './mesh.ts';
import { textWidth } from './text-width.ts';
import { bottomOf, centre, round } from './tree.ts';

const BAR_HEIGHT = 34;
const TO_BAR = 58;

/** `top`: the lower end of the NUMA nodes; `left` and `right`: where the page begins and ends. */
export function drawFabric(gpus: readonly PlacedGpu[], top: number, left: number, right: number): Drawing {
  const bar = drawSwitch(gpus, top, left, right);
  const arcs = drawMesh(gpus, bar.bottom);
  return { markup: arcs.markup + bar.markup, bottom: arcs.bottom };
}

function drawSwitch(gpus: readonly PlacedGpu[], top: number, leftEnd: number, rightEnd: number): Drawing {
  const ends = gpus.flatMap(({ part, box }) => {
    const links = part.nvlinks.filter(({ to }) => to.type === 'nvswitch');
    return links.length === 0 ? [] : [{ part, box, links }];
  });
  const [first] = ends;
  const last = ends.at(-1);
  if (first === undefined || last === undefined) return { markup: '', bottom: top };
  const rates = different(
    ends.map(({ links }) => `${count(links)} NVLinks, ${gigabytes(bandwidth(links))} GB/s each way`),
  );
  const title = first.links.length > 1 ? `${first.links.length} NVSwitches` : 'NVSwitch';
  const about = rates.length === 1 ? `each GPU: ${rates.join('')}` : '';
  const words = textWidth(title, 14, true) + textWidth(about, 11) + 48;
  const span = last.box.x + last.box.width - first.box.x;
  const y = top + TO_BAR;
  const wide = Math.max(span, words);
  const x = Math.max(leftEnd, Math.min(first.box.x + (span - wide) / 2, rightEnd - wide));
  const box = { x, y, width: wide, height: BAR_HEIGHT };
  const left = centre(box) - (words - 48 + (about === '' ? 0 : 12)) / 2;
  const name = tag('rect', { ...box, rx: 8 }) + svgText(left, y + 17, title, { size: 14, bold: true, anchor: 'start' });
  const more = svgText(left + textWidth(title, 14, true) + 12, y + 17, about, {
    size: 11,
    anchor: 'start',
    class: 'faint',
  });
  const lines = ends.map(({ part, box: from, links }) => {
    const x = centre(from);
    const line = tag('path', {
      d: `M${round(x)} ${round(bottomOf(from))}V${round(y)}`,
      class: 'nvlink',
      'stroke-width': stroke(count(links)),
    });
    const hint = `${part.node.name} to ${title}: ${count(links)} NVLinks, ${gigabytes(bandwidth(links))} GB/s each way`;
    return svgGroup('link', hint, line + label(x, top + TO_BAR / 2, [`×${count(links)}`], 11, 'paper'));
  });
  const markup =
    lines.join('') + svgGroup('fabric', `${title}: ${rates.join('; ')}`, name + (about === '' ? '' : more));
  return { markup, bottom: y + BAR_HEIGHT };
}
