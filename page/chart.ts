/** The timeline on a canvas: rows are ranks; columns are time, or one operation each. */
import { type Group, type Operation, type Part, timeText } from './model.ts';

export type Mode = 'time' | 'number';

export interface Selection {
  readonly operation: number;
  readonly rank: number;
}

/** Pixels: of the rank numbers on the left, and of the axis on top. */
const LEFT = 56;
const TOP = 24;
const MIN_CELL = 3;
const HATCH = 6;

function rowHeight(ranks: number): number {
  return ranks <= 24 ? 22 : ranks <= 64 ? 14 : ranks <= 256 ? 7 : 4;
}

/** What is visible: [from, from + span) of time units, or of operations. */
interface View {
  from: number;
  span: number;
}

export class Chart {
  readonly #canvas: HTMLCanvasElement;
  readonly #end: number;
  #group: Group;
  #mode: Mode = 'number';
  #view: View = { from: 0, span: 1 };
  #rowOf = new Map<number, number>();
  selection: Selection | null = null;
  #frame = 0;

  /** `end`: the last moment recorded. */
  constructor(canvas: HTMLCanvasElement, group: Group, end: number) {
    this.#canvas = canvas;
    this.#end = end;
    this.#group = group;
    this.show(group);
    canvas.parentElement?.addEventListener('scroll', () => this.draw());
  }

  get mode(): Mode {
    return this.#mode;
  }

  get group(): Group {
    return this.#group;
  }

  show(group: Group): void {
    this.#group = group;
    this.#rowOf = new Map(group.ranks.map((rank, row) => [rank, row]));
    this.selection = null;
    this.#canvas.style.height = `${TOP + group.ranks.length * this.#row + 1}px`;
    this.all();
  }

  setMode(mode: Mode): void {
    this.#mode = mode;
    this.all();
    if (this.selection !== null) this.#reveal(this.selection.operation);
  }

  /** Everything; of operations as many as can be told apart, the last ones. */
  all(): void {
    const { operations } = this.#group;
    if (this.#mode === 'number') {
      const fit = Math.max(1, Math.floor(this.#width / MIN_CELL));
      const span = Math.min(Math.max(1, operations.length), fit);
      this.#view = { from: operations.length - Math.min(operations.length, span), span };
    } else {
      const from = operations[0]?.begin ?? 0;
      const last = operations.reduce((late, one) => Math.max(late, this.#endOf(one)), from);
      const span = Math.max(10, (last - from) * 1.02);
      this.#view = { from: from - span * 0.01, span };
    }
    this.draw();
  }

  zoom(factor: number, at = 0.5): void {
    const { from, span } = this.#view;
    const least = this.#mode === 'number' ? 4 : 10;
    const most = this.#mode === 'number' ? Math.max(least, this.#group.operations.length) : 4 * (this.#end + 1000);
    const next = Math.min(most, Math.max(least, span * factor));
    this.#view = this.#bounded({ from: from + (span - next) * at, span: next });
    this.draw();
  }

  move(pixels: number): void {
    const { from, span } = this.#view;
    this.#view = this.#bounded({ from: from + (pixels / this.#width) * span, span });
    this.draw();
  }

  select(selection: Selection | null): void {
    this.selection = selection;
    if (selection !== null) this.#reveal(selection.operation);
    this.draw();
  }

  /** What is at a place of the canvas, in its own pixels. */
  at(x: number, y: number): Selection | null {
    const rank = this.#group.ranks[Math.floor((y - TOP) / this.#row)];
    if (rank === undefined || x < LEFT || y < TOP) return null;
    const place = this.#view.from + ((x - LEFT) / this.#width) * this.#view.span;
    if (this.#mode === 'number') {
      const operation = Math.floor(place);
      return operation >= 0 && operation < this.#group.operations.length ? { operation, rank } : null;
    }
    const slack = (2 / this.#width) * this.#view.span;
    const operation = this.#group.operations.findLastIndex(({ parts, arrived }, index) =>
      parts.some(
        (part) =>
          part.rank === rank &&
          place >= part.start - slack &&
          place <= (part.end ?? this.#endOf(this.#group.operations[index])) + slack &&
          arrived > 0,
      ),
    );
    return operation === -1 ? null : { operation, rank };
  }

  draw(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  get #row(): number {
    return rowHeight(this.#group.ranks.length);
  }

  get #width(): number {
    return Math.max(100, this.#canvas.clientWidth - LEFT);
  }

  #bounded({ from, span }: View): View {
    const [least, most] =
      this.#mode === 'number'
        ? [0, Math.max(0, this.#group.operations.length - span)]
        : [-span / 2, Math.max(0, this.#end - span / 2)];
    return { from: Math.min(most, Math.max(least, from)), span };
  }

  #reveal(operation: number): void {
    const one = this.#group.operations[operation];
    if (one === undefined) return;
    const [begin, end] = this.#mode === 'number' ? [operation, operation + 1] : [one.begin, this.#endOf(one)];
    const { from, span } = this.#view;
    if (begin >= from && end <= from + span) return;
    const next = Math.max(span, (end - begin) * 1.2);
    this.#view = this.#bounded({ from: (begin + end - next) / 2, span: next });
  }

  /** What has not ended lasts until the recorder was read. */
  #endOf(operation: Operation | undefined): number {
    if (operation === undefined) return 0;
    return operation.parts.reduce(
      (late, { state, start, end }) => Math.max(late, end ?? (state === 'running' ? this.#end : start)),
      operation.begin,
    );
  }

  #paint(): void {
    const canvas = this.#canvas;
    const ratio = window.devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d');
    if (context === null) return;
    context.scale(ratio, ratio);
    const painter = new Painter(context, colours(), this.#row);
    context.clearRect(0, 0, width, height);
    this.#labels(painter);
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT, height);
    context.clip();
    if (this.#mode === 'number') this.#columns(painter, height);
    else this.#spans(painter, height);
    context.restore();
    this.#axis(painter, width);
  }

  /** It stays in sight when the frame scrolls. */
  #axis(painter: Painter, width: number): void {
    const { context, colour } = painter;
    const top = this.#canvas.parentElement?.scrollTop ?? 0;
    context.fillStyle = colour.surface;
    context.fillRect(0, top, width, TOP);
    context.fillStyle = colour.line;
    context.fillRect(0, top + TOP - 1, width, 1);
    painter.label('rank', LEFT - 10, top + TOP / 2, 12);
    const { from, span } = this.#view;
    const scale = this.#width / span;
    if (this.#mode === 'time') {
      for (const tick of ticks(from, span, this.#width / 110))
        painter.axis(LEFT + (tick - from) * scale, timeText(tick), top, TOP);
      return;
    }
    const every = Math.max(1, Math.ceil(64 / scale));
    for (const [index, { number }] of this.#group.operations.entries())
      if (index % every === 0 && index >= from && index < from + span)
        painter.axis(LEFT + (index - from) * scale, number, top, TOP);
  }

  /** Numbers of the ranks; those that did not come or failed have a mark. */
  #labels(painter: Painter): void {
    const { context, colour, row } = painter;
    const { ranks, operations } = this.#group;
    const marked = new Set(
      operations.flatMap(({ missing, parts }) => [
        ...missing,
        ...parts.filter(({ state }) => state === 'failed').map(({ rank }) => rank),
      ]),
    );
    // Where all of them failed together, no mark says anything.
    const marks = marked.size < ranks.length ? marked : new Set<number>();
    const every = Math.max(1, Math.ceil(14 / row));
    for (const [index, rank] of ranks.entries()) {
      const y = TOP + (index + 0.5) * row;
      if (index % every === 0) painter.label(`${rank}`, LEFT - 10, y, Math.min(12, Math.max(10, row - 2)));
      if (!marks.has(rank)) continue;
      context.fillStyle = colour.bad;
      context.beginPath();
      context.moveTo(LEFT - 8, y - 5);
      context.lineTo(LEFT - 1, y);
      context.lineTo(LEFT - 8, y + 5);
      context.fill();
    }
  }

  #columns(painter: Painter, height: number): void {
    const { from, span } = this.#view;
    const cell = this.#width / span;
    const { operations } = this.#group;
    for (let index = Math.floor(from); index < Math.min(operations.length, Math.ceil(from + span)); index++) {
      const operation = operations[index];
      if (operation === undefined) continue;
      const x = LEFT + (index - from) * cell;
      const gap = cell >= 6 ? 1 : 0;
      const length = Math.max(1, this.#endOf(operation) - operation.begin);
      for (const part of operation.parts) {
        const y = this.#y(part.rank);
        const share = Math.min(1, Math.max(0, (operation.arrived - part.start) / length));
        const wait = operation.isMessage ? 0 : part.end === null ? 1 : Math.min(1, share);
        painter.part(part, { x, y, width: cell - gap, waitWidth: (cell - gap) * wait });
      }
      for (const rank of operation.missing) painter.missing(x, this.#y(rank), cell - gap);
      if (operation.differs) painter.hatch(x, TOP, cell - gap, height - TOP);
      if (this.selection?.operation === index) painter.selected(x, TOP, cell - gap, height - TOP);
    }
    this.#selectedRow(painter);
  }

  #spans(painter: Painter, height: number): void {
    const { from, span } = this.#view;
    const scale = this.#width / span;
    for (const [index, operation] of this.#group.operations.entries()) {
      const end = this.#endOf(operation);
      if (end < from || operation.begin > from + span) continue;
      for (const part of operation.parts) {
        const x = LEFT + (part.start - from) * scale;
        const until = part.end ?? (part.state === 'running' ? this.#end : part.start);
        const width = Math.max(1, (until - part.start) * scale);
        const arrived = operation.isMessage ? part.start : Math.min(until, operation.arrived);
        painter.part(part, { x, y: this.#y(part.rank), width, waitWidth: Math.max(0, (arrived - part.start) * scale) });
      }
      const x = LEFT + (operation.begin - from) * scale;
      if (operation.differs) painter.hatch(x, TOP, Math.max(3, (end - operation.begin) * scale), height - TOP);
      if (this.selection?.operation === index)
        painter.selected(x, TOP, Math.max(3, (end - operation.begin) * scale), height - TOP);
    }
    this.#selectedRow(painter);
  }

  #selectedRow({ context, colour, row }: Painter): void {
    if (this.selection === null) return;
    context.strokeStyle = colour.focus;
    context.lineWidth = 1;
    context.strokeRect(LEFT + 0.5, this.#y(this.selection.rank) - 0.5, this.#width - 1, row);
  }

  #y(rank: number): number {
    return TOP + (this.#rowOf.get(rank) ?? 0) * this.#row;
  }
}

interface Cell {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly waitWidth: number;
}

type Colours = Readonly<
  Record<'wait' | 'transfer' | 'open' | 'bad' | 'quiet' | 'glyph' | 'surface' | 'line' | 'muted' | 'focus', string>
>;

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`);
  return {
    wait: of('wait'),
    transfer: of('transfer'),
    open: of('open'),
    bad: of('bad'),
    quiet: of('quiet'),
    glyph: of('glyph'),
    surface: of('surface'),
    line: of('line'),
    muted: of('muted'),
    focus: of('focus'),
  };
}

export class Painter {
  readonly context: CanvasRenderingContext2D;
  readonly colour: Colours;
  readonly row: number;

  constructor(context: CanvasRenderingContext2D, colour: Colours, row: number) {
    this.context = context;
    this.colour = colour;
    this.row = row;
  }

  get #height(): number {
    return this.row >= 6 ? this.row - 1 : this.row;
  }

  part({ state }: Pick<Part, 'state'>, { x, y, width, waitWidth }: Cell): void {
    const { context, colour } = this;
    const height = this.#height;
    switch (state) {
      case 'ended':
        context.fillStyle = colour.transfer;
        context.fillRect(x, y, width, height);
        context.fillStyle = colour.wait;
        context.fillRect(x, y, waitWidth, height);
        return;
      case 'running':
      case 'failed':
        context.fillStyle = state === 'running' ? colour.open : colour.bad;
        context.fillRect(x, y, width, height);
        if (width >= 9 && height >= 9) this.#glyph(state === 'running' ? '…' : '!', x + width / 2, y + height / 2);
        return;
      default:
        context.fillStyle = colour.quiet;
        context.fillRect(x, y, width, height);
        context.strokeStyle = colour.muted;
        context.lineWidth = 1;
        if (width >= 4 && height >= 4) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
  }

  /** An empty frame with a cross: found without the colour, too. */
  missing(x: number, y: number, width: number): void {
    const { context, colour } = this;
    const height = this.#height;
    context.strokeStyle = colour.bad;
    context.lineWidth = height >= 9 ? 2 : 1;
    context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
    if (width < 7 || height < 7) {
      context.fillStyle = colour.bad;
      context.fillRect(x, y, Math.max(2, width), height);
      return;
    }
    context.beginPath();
    context.moveTo(x + 1, y + 1);
    context.lineTo(x + width - 1, y + height - 1);
    context.moveTo(x + width - 1, y + 1);
    context.lineTo(x + 1, y + height - 1);
    context.stroke();
  }

  hatch(x: number, y: number, width: number, height: number): void {
    const { context, colour } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colour.bad;
    context.lineWidth = 1.5;
    context.beginPath();
    for (let at = -height; at < width; at += HATCH) {
      context.moveTo(x + at, y + height);
      context.lineTo(x + at + height, y);
    }
    context.stroke();
    context.restore();
  }

  selected(x: number, y: number, width: number, height: number): void {
    this.context.strokeStyle = this.colour.focus;
    this.context.lineWidth = 2;
    this.context.strokeRect(x - 1, y - 1, width + 2, height);
  }

  label(text: string, x: number, y: number, size: number): void {
    const { context, colour } = this;
    context.fillStyle = colour.muted;
    context.font = `${size}px system-ui, sans-serif`;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(text, x, y);
  }

  axis(x: number, text: string, top: number, height: number): void {
    const { context, colour } = this;
    context.fillStyle = colour.line;
    context.fillRect(x, top + height - 6, 1, 6);
    context.fillStyle = colour.muted;
    context.font = '12px system-ui, sans-serif';
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(text, x + 3, top + height / 2);
  }

  #glyph(text: string, x: number, y: number): void {
    this.context.fillStyle = this.colour.glyph;
    this.context.font = `bold ${Math.min(13, this.row - 2)}px system-ui, sans-serif`;
    this.context.textAlign = 'center';
    this.context.textBaseline = 'middle';
    this.context.fillText(text, x, y);
  }
}

/** At 1, 2 and 5 times a power of ten. */
function ticks(from: number, span: number, about: number): number[] {
  const rough = span / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < from + span; at += step) found.push(at);
  return found;
}
