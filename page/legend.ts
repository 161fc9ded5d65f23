/** What the marks of the chart mean, each as the chart draws it. */
import { colours, Painter } from './chart.ts';
import { element, make } from './dom.ts';

const WIDTH = 22;
const HEIGHT = 14;
const ENTRIES: readonly (readonly [string, (painter: Painter) => void])[] = [
  ['waits for the last rank', (painter) => painter.part({ state: 'ended' }, cell(WIDTH))],
  ['data moves', (painter) => painter.part({ state: 'ended' }, cell(0))],
  ['has not ended', (painter) => painter.part({ state: 'running' }, cell(0))],
  ['failed', (painter) => painter.part({ state: 'failed' }, cell(0))],
  ['not begun, or not seen', (painter) => painter.part({ state: 'queued' }, cell(0))],
  ['did not come', (painter) => painter.missing(0, 0, WIDTH)],
  ['ranks called different things', (painter) => painter.hatch(0, 0, WIDTH, HEIGHT)],
];

function cell(waitWidth: number) {
  return { x: 0, y: 0, width: WIDTH, waitWidth };
}

export function showLegend(): void {
  element('legend').replaceChildren(
    ...ENTRIES.map(([text, paint]) => {
      const canvas = make('canvas', { width: `${WIDTH * 2}`, height: `${HEIGHT * 2}`, 'aria-hidden': 'true' });
      const context = canvas.getContext('2d');
      if (context !== null) {
        context.scale(2, 2);
        paint(new Painter(context, colours(), HEIGHT + 1));
      }
      return make('li', {}, canvas, text);
    }),
  );
}
