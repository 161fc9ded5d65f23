/** The page of `ncclrun replay --html`: what each rank did last, from the data inside the file. Nothing is loaded or stored. */
import type { PageData } from '../launcher/replay/page-format.ts';
import { showAbout } from './about.ts';
import { Chart } from './chart.ts';
import { controlChart } from './control.ts';
import { element, make } from './dom.ts';
import { showLegend } from './legend.ts';
import { type Group, unpack } from './model.ts';
import { OperationTable } from './operation-table.ts';
import { themeSwitch } from './theme.ts';

async function start(): Promise<void> {
  const data: PageData = JSON.parse(element('data').textContent ?? '');
  const groups = await unpack(data);
  showAbout(data, groups);
  const shown = groups.filter(({ operations }) => operations.length > 0);
  const first = busiest(shown);
  const redraws: (() => void)[] = [showLegend];
  if (first === undefined) {
    element('tools').replaceChildren(make('p', { class: 'muted' }, 'No rank recorded an operation.'));
    for (const id of ['chart', 'legend', 'table-button']) element(id).remove();
  } else {
    const canvas = element('chart');
    if (!(canvas instanceof HTMLCanvasElement)) throw new Error('the chart is no canvas');
    const chart = new Chart(canvas, first, data.last);
    const table = new OperationTable(data.last);
    controlChart(chart, canvas, shown, data, (group) => table.show(group));
    table.show(first);
    showLegend();
    redraws.push(() => chart.draw());
    new ResizeObserver(() => chart.draw()).observe(canvas);
  }
  themeSwitch(() => {
    for (const redraw of redraws) if (first !== undefined) redraw();
  });
}

/** The one with something to see, else that with most operations. */
function busiest(groups: readonly Group[]): Group | undefined {
  return groups.toSorted((one, other) => weightOf(other) - weightOf(one))[0];
}

function weightOf({ operations }: Group): number {
  const seen = operations.filter(({ missing, differs }) => missing.length > 0 || differs).length;
  return operations.length + 1e9 * seen;
}

start().catch((error: unknown) => {
  const text = `This page cannot show its data: ${error instanceof Error ? error.message : String(error)}`;
  element('verdicts').replaceChildren(make('div', { class: 'card' }, text));
});
