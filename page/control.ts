/** Buttons, keys and pointer of the chart, and the sentence about what is selected. */
import type { PageData } from '../launcher/replay/page-format.ts';
import type { Chart, Mode, Selection } from './chart.ts';
import { button, element, make } from './dom.ts';
import { bytesText, firstDifference, type Group, type Operation, type Part, rangesText, timeText } from './model.ts';

const ZOOM = 1.6;
const MODES: readonly (readonly [Mode, string])[] = [
  ['number', 'By operation'],
  ['time', 'By time'],
];

export function controlChart(
  chart: Chart,
  canvas: HTMLCanvasElement,
  groups: readonly Group[],
  data: PageData,
  showGroup: (group: Group) => void,
): void {
  const describe = (): void => {
    element('details').textContent = detailsOf(chart, data);
  };
  const select = (selection: Selection | null): void => {
    chart.select(selection);
    describe();
  };
  const difference = button('First difference', () => goToDifference(chart, select));
  const changed = (): void => {
    difference.disabled = firstDifference(chart.group) === null;
    canvas.setAttribute('aria-label', `Timeline of ${chart.group.label}: a table below has the same`);
    describe();
  };
  const modes = MODES.map(([mode, text]) => button(text, () => setMode(mode)));
  const setMode = (mode: Mode): void => {
    chart.setMode(mode);
    for (const [index, one] of modes.entries()) one.setAttribute('aria-pressed', `${MODES[index]?.[0] === mode}`);
  };
  const zooms = [
    button('−', () => chart.zoom(ZOOM), { 'aria-label': 'zoom out' }),
    button('+', () => chart.zoom(1 / ZOOM), { 'aria-label': 'zoom in' }),
    button('All', () => chart.all(), { 'aria-label': 'show everything' }),
  ];
  element('tools').replaceChildren(
    ...chooser(groups, chart.group, (group) => {
      chart.show(group);
      showGroup(group);
      changed();
    }),
    make('div', { class: 'group', role: 'group', 'aria-label': 'what the columns are' }, ...modes),
    make('div', { class: 'group many', role: 'group', 'aria-label': 'zoom' }, ...zooms),
    difference,
  );
  setMode('number');
  changed();
  listenToPointer(chart, canvas, select);
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = () => setMode(chart.mode === 'time' ? 'number' : 'time');
    if (!onKey(event.key, chart, select, next)) return;
    event.preventDefault();
  });
}

function chooser(groups: readonly Group[], first: Group, chosen: (group: Group) => void): HTMLElement[] {
  if (groups.length < 2) return [];
  const select = make('select', {}, ...groups.map(({ label }, index) => make('option', { value: `${index}` }, label)));
  select.value = `${groups.indexOf(first)}`;
  select.addEventListener('change', () => {
    const group = groups[Number(select.value)];
    if (group !== undefined) chosen(group);
  });
  return [make('label', {}, 'Communicator', select)];
}

function goToDifference(chart: Chart, select: (selection: Selection) => void): void {
  const operation = firstDifference(chart.group);
  if (operation === null) return;
  const one = chart.group.operations[operation];
  const rank = one?.missing[0] ?? one?.last ?? chart.group.ranks[0];
  if (rank !== undefined) select({ operation, rank });
}

function listenToPointer(chart: Chart, canvas: HTMLCanvasElement, select: (selection: Selection | null) => void): void {
  let pressedAt: number | null = null;
  let moved = false;
  canvas.addEventListener('pointerdown', ({ clientX, pointerId }) => {
    [pressedAt, moved] = [clientX, false];
    canvas.setPointerCapture(pointerId);
  });
  canvas.addEventListener('pointermove', ({ clientX }) => {
    if (pressedAt === null || Math.abs(clientX - pressedAt) < (moved ? 1 : 4)) return;
    chart.move(pressedAt - clientX);
    [pressedAt, moved] = [clientX, true];
  });
  canvas.addEventListener('pointerup', ({ offsetX, offsetY }) => {
    if (pressedAt !== null && !moved) select(chart.at(offsetX, offsetY));
    pressedAt = null;
  });
  canvas.addEventListener('pointercancel', () => (pressedAt = null));
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      chart.zoom(event.deltaY > 0 ? ZOOM : 1 / ZOOM, event.offsetX / canvas.clientWidth);
    },
    { passive: false },
  );
}

/** True: it was one of ours. */
function onKey(key: string, chart: Chart, select: (selection: Selection) => void, switchMode: () => void): boolean {
  const { operations, ranks } = chart.group;
  const at = chart.selection ?? { operation: operations.length - 1, rank: ranks[0] ?? 0 };
  const step = (operation: number, row: number): boolean => {
    const rows = Math.min(ranks.length - 1, Math.max(0, ranks.indexOf(at.rank) + row));
    const chosen = Math.min(operations.length - 1, Math.max(0, at.operation + operation));
    select({ operation: chosen, rank: ranks[rows] ?? at.rank });
    return true;
  };
  switch (key) {
    case 'ArrowLeft':
      return step(-1, 0);
    case 'ArrowRight':
      return step(1, 0);
    case 'ArrowUp':
      return step(0, -1);
    case 'ArrowDown':
      return step(0, 1);
    case 'Home':
      return step(-operations.length, 0);
    case 'End':
      return step(operations.length, 0);
    case '+':
    case '=':
      chart.zoom(1 / ZOOM);
      return true;
    case '-':
      chart.zoom(ZOOM);
      return true;
    case '0':
      chart.all();
      return true;
    case 'm':
      switchMode();
      return true;
    case 'd':
      goToDifference(chart, select);
      return true;
    default:
      return false;
  }
}

function detailsOf(chart: Chart, data: PageData): string {
  const { selection, group } = chart;
  if (selection === null) return 'Select an operation in the chart to read what the rank did.';
  const operation = group.operations[selection.operation];
  if (operation === undefined) return '';
  const about = data.ranks.find(({ rank }) => rank === selection.rank);
  const host =
    about === undefined
      ? ''
      : ` on ${data.hosts[about.host]?.host ?? '?'}${about.gpu === null ? '' : `, GPU ${about.gpu}`}`;
  const pair = operation.isMessage ? ` from ${operation.from ?? '?'} to ${operation.to ?? '?'}` : '';
  const call = `Operation ${operation.number}: ${operation.call}${pair}, ${bytesText(operation.bytes)}`;
  const parts = operation.parts.filter(({ rank }) => rank === selection.rank);
  const did =
    parts.length > 0
      ? parts.map((part) => partText(operation, part)).join('; ')
      : operation.missing.includes(selection.rank)
        ? 'is not in it'
        : 'has nothing of it';
  const last = operation.last === null ? '' : ` Rank ${operation.last} came last.`;
  const missing = missingText(operation.missing);
  const differs = operation.differs ? ' The ranks did not call the same.' : '';
  return `${call}. Rank ${selection.rank}${host} ${did}.${last}${missing}${differs}`;
}

function missingText(missing: readonly number[]): string {
  if (missing.length === 0) return '';
  return missing.length === 1 ? ` Rank ${missing[0]} did not come.` : ` Ranks ${rangesText(missing)} did not come.`;
}

function partText({ begin, arrived, isMessage }: Operation, { state, start, end, waitsFor }: Part): string {
  const from = `${timeText(start - begin)} after the first rank`;
  const waits = waitsFor === null ? '' : `, waiting for rank ${waitsFor}`;
  switch (state) {
    case 'ended': {
      if (end === null) return `began ${from} and ended`;
      const wait = isMessage ? 0 : Math.max(0, Math.min(end, arrived) - start);
      const split = wait > 0 ? `, of which it waited ${timeText(wait)} for the last rank` : '';
      return `began ${from} and ended ${timeText(end - start)} later${split}`;
    }
    case 'running':
      return `began ${from} and has not ended${waits}`;
    case 'failed':
      return `began ${from} and failed${end === null ? '' : ` ${timeText(end - start)} later`}${waits}`;
    case 'queued':
      return `called it ${from}; it has not begun`;
    case 'called':
      return `called it ${from}; nobody saw it begin and end`;
    case 'captured':
      return `recorded it into a graph ${from}`;
    case 'cancelled':
      return 'never began it: the communicator was broken before';
    default:
      return state satisfies never;
  }
}
