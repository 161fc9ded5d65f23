/** Elements and their contents: text only, never markup. */

export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

interface Attributes {
  readonly [name: string]: string;
}

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly (string | Node)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function button(text: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = make('button', { type: 'button', ...attributes }, text);
  made.addEventListener('click', act);
  return made;
}

interface Column {
  readonly title: string;
  readonly is?: 'number' | 'wide';
}

export function tableOf(
  columns: readonly Column[],
  rows: readonly (readonly (string | { readonly bad: string })[])[],
): HTMLTableElement {
  const head = columns.map(({ title, is = '' }) => make('th', { scope: 'col', class: is }, title));
  const body = rows.map((cells) =>
    make(
      'tr',
      {},
      ...cells.map((cell, index) =>
        typeof cell === 'string'
          ? make('td', { class: columns[index]?.is ?? '' }, cell)
          : make('td', { class: `bad ${columns[index]?.is ?? ''}` }, cell.bad),
      ),
    ),
  );
  return make('table', {}, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...body));
}
