/** The same as the chart, as a table with pages. */
import { button, element, make, tableOf } from './dom.ts';
import { bytesText, type Group, type Operation, rangesText, timeText } from './model.ts';

const ROWS = 100;
const COLUMNS = [
  { title: 'Operation' },
  { title: 'Call', is: 'wide' },
  { title: 'Size', is: 'number' },
  { title: 'Called at', is: 'number' },
  { title: 'Began within', is: 'number' },
  { title: 'Ended after', is: 'number' },
  { title: 'Ranks', is: 'number' },
  { title: 'Last', is: 'number' },
  { title: 'Did not come', is: 'wide' },
] as const;

export class OperationTable {
  readonly #end: number;
  #group: Group | null = null;
  #page = 0;

  constructor(end: number) {
    this.#end = end;
    const toggle = element('table-button');
    toggle.addEventListener('click', () => {
      element('table').hidden = !element('table').hidden;
      this.#draw();
    });
  }

  show(group: Group): void {
    this.#group = group;
    this.#page = Math.max(0, Math.ceil(group.operations.length / ROWS) - 1);
    this.#draw();
  }

  #draw(): void {
    const [toggle, place] = [element('table-button'), element('table')];
    toggle.textContent = place.hidden ? 'Show as a table' : 'Hide the table';
    toggle.setAttribute('aria-expanded', `${!place.hidden}`);
    if (place.hidden || this.#group === null) return place.replaceChildren();
    const { operations } = this.#group;
    const first = this.#page * ROWS;
    const pages = Math.max(1, Math.ceil(operations.length / ROWS));
    const turn = (to: number): void => {
      this.#page = Math.min(pages - 1, Math.max(0, to));
      this.#draw();
    };
    const rows = operations.slice(first, first + ROWS).map((operation) => this.#row(operation));
    place.replaceChildren(
      make(
        'div',
        { class: 'pages' },
        button('Earlier', () => turn(this.#page - 1), this.#page === 0 ? { disabled: '' } : {}),
        `${first + 1}–${first + rows.length} of ${operations.length}`,
        button('Later', () => turn(this.#page + 1), this.#page + 1 >= pages ? { disabled: '' } : {}),
      ),
      make('div', { class: 'scroll' }, tableOf(COLUMNS, rows)),
    );
  }

  #row(operation: Operation): (string | { bad: string })[] {
    const { number, call, bytes, begin, isMessage, from, to, parts, missing, last, differs } = operation;
    const pair = isMessage ? ` from ${from ?? '?'} to ${to ?? '?'}` : '';
    const began = parts.reduce((late, { start }) => Math.max(late, start - begin), 0);
    const ended = parts.reduce<number | null>(
      (late, { end }) => (end === null ? late : Math.max(late ?? 0, end - begin)),
      null,
    );
    const open = parts.filter(({ state }) => state === 'running').map(({ rank }) => rank);
    return [
      number,
      differs ? { bad: `${call}${pair}: not the same` } : `${call}${pair}`,
      bytesText(bytes),
      timeText(Math.min(begin, this.#end)),
      timeText(began),
      open.length > 0 ? { bad: `${open.length} not yet` } : ended === null ? '' : timeText(ended),
      `${parts.length}`,
      last === null ? '' : `${last}`,
      missing.length === 0 ? '' : { bad: rangesText(missing) },
    ];
  }
}
