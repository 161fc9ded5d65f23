/** Curves as a picture that is read on light and on dark paper: time, bus bandwidth, and our time beside theirs, over the size. */
import { linearAxis, sizeAxis, timeAxis } from './axis.ts';
import type { Axis } from './axis.ts';
import { ratiosOf } from './curves.ts';
import type { Curve, Line } from './curves.ts';

const HEIGHT = 430;
const PANEL = { top: 104, bottom: 372, left: 60, width: 300, step: 372 } as const;

const STYLE = `
  svg { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; --ink: #1f2328; --dim: #59636e; --paper: #ffffff; --grid: #e4e8ec;
    --ours: #0969da; --theirs: #bc4c00; --floor: #818b98; }
  @media (prefers-color-scheme: dark) { svg { --ink: #f0f6fc; --dim: #9198a1; --paper: #0d1117; --grid: #262c34;
    --ours: #58a6ff; --theirs: #f0883e; --floor: #7d8590; } }
  text { fill: var(--ink); } .dim { fill: var(--dim); font-size: 12px; } .head { font-size: 17px; font-weight: 600; } .title { font-weight: 600; }
  .grid { stroke: var(--grid); } .axis { stroke: var(--dim); }
  .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
  .ours, .ours-window { stroke: var(--ours); } .theirs, .theirs-window { stroke: var(--theirs); }
  .ours-window, .theirs-window { stroke-dasharray: 7 5; }
  .floor { stroke: var(--floor); stroke-width: 1.6; stroke-dasharray: 1.5 4; }`;

interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly isLogarithmic: boolean;
}

export function chartSvg(title: string, curves: readonly Curve[]): string {
  const panels = panelsOf(curves);
  const width = Math.max(panels.length * PANEL.step + 20, 760);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img" aria-label="${title}">
<title>${title}</title>
<style>${STYLE}
</style>
<rect width="100%" height="100%" fill="var(--paper)"/>
${text(24, 34, title, 'head')}
${legend(curves)}
${panels.map((panel, index) => panelSvg(panel, PANEL.left + index * PANEL.step)).join('\n')}
</svg>
`;
}

function panelsOf(curves: readonly Curve[]): Panel[] {
  const lines = (value: 'microseconds' | 'bus'): Line[] =>
    curves.map(({ kind, points }) => ({ kind, places: points.map((point) => [point.bytes, point[value]]) }));
  const ratios = ratiosOf(curves);
  return [
    { title: 'microseconds', lines: lines('microseconds'), isLogarithmic: true },
    { title: 'bus bandwidth, GB/s', lines: lines('bus'), isLogarithmic: false },
    ...(ratios.length === 0 ? [] : [{ title: 'our time, of NCCL’s', lines: ratios, isLogarithmic: false }]),
  ];
}

function legend(curves: readonly Curve[]): string {
  const parts: string[] = [];
  let x = 24;
  for (const { kind, label } of curves) {
    parts.push(`<path class="curve ${kind}" d="M${x} 56h30"/>`, text(x + 38, 60, label, ''));
    x += 38 + label.length * 7.5 + 26;
  }
  return parts.join('\n');
}

function panelSvg({ title, lines, isLogarithmic }: Panel, left: number): string {
  const right = left + PANEL.width;
  const places = lines.flatMap((line) => line.places);
  const x = sizeAxis(
    places.map(([bytes]) => bytes),
    { low: left, high: right },
  );
  const y = (isLogarithmic ? timeAxis : linearAxis)(
    places.map(([, value]) => value),
    { low: PANEL.bottom, high: PANEL.top },
  );
  const paths = lines.map((line) => {
    const corners = line.places.map(([bytes, value]) => `${round(x.place(bytes))} ${round(y.place(value))}`);
    return `<path class="curve ${line.kind}" d="M${corners.join('L')}"/>`;
  });
  return `<g>
${text(left, 88, title, 'title')}
${grid(x, y, left, right)}
${paths.join('\n')}
${text((left + right) / 2, HEIGHT - 14, 'bytes of the larger buffer', 'dim', 'middle')}
</g>`;
}

function grid(x: Axis, y: Axis, left: number, right: number): string {
  const parts: string[] = [];
  for (const { at, label } of x.ticks) {
    parts.push(`<path class="grid" d="M${round(at)} ${PANEL.top}V${PANEL.bottom}"/>`);
    if (label !== '') parts.push(text(at, PANEL.bottom + 19, label, 'dim', 'middle'));
  }
  for (const { at, label } of y.ticks) {
    parts.push(`<path class="grid" d="M${left} ${round(at)}H${right}"/>`);
    if (label !== '') parts.push(text(left - 8, at + 4, label, 'dim', 'end'));
  }
  parts.push(`<path class="axis" d="M${left} ${PANEL.bottom}H${right}"/>`);
  return parts.join('\n');
}

function text(x: number, y: number, words: string, kind: string, anchor = 'start'): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
