/** Pieces of SVG as text. */
import { textWidth } from './text-width.ts';

type Attributes = Readonly<Record<string, string | number>>;

/** `children` is markup already. */
export function tag(name: string, attributes: Attributes, children = ''): string {
  const words = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(rounded(value))}"`);
  return children === '' ? `<${name}${words.join('')}/>` : `<${name}${words.join('')}>${children}</${name}>`;
}

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function rounded(value: string | number): string {
  return typeof value === 'string' ? value : String(Number(value.toFixed(1)));
}

interface TextStyle {
  readonly size: number;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly bold?: boolean;
  readonly class?: string;
}

/** `y`: of its middle. */
export function svgText(x: number, y: number, content: string, style: TextStyle): string {
  const { size, anchor = 'middle', bold = false } = style;
  const attributes: Attributes = {
    x,
    y: y + size * 0.36,
    'font-size': size,
    ...(anchor === 'start' ? {} : { 'text-anchor': anchor }),
    ...(bold ? { 'font-weight': 600 } : {}),
    ...(style.class === undefined ? {} : { class: style.class }),
  };
  return tag('text', attributes, escaped(content));
}

/** On the colour of the paper, so that it can be read on lines. */
export function label(x: number, y: number, lines: readonly string[], size: number, behind: string): string {
  const width = Math.max(...lines.map((line) => textWidth(line, size))) + 6;
  const height = lines.length * (size + 2) + 3;
  const plate = tag('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: 4, class: behind });
  const first = y - ((lines.length - 1) * (size + 2)) / 2;
  const words = lines.map((line, index) => svgText(x, first + index * (size + 2), line, { size, class: 'faint' }));
  return plate + words.join('');
}

/** A group with the words that appear where the pointer rests. */
export function svgGroup(className: string, hint: string, children: string): string {
  return tag('g', { class: className }, tag('title', {}, escaped(hint)) + children);
}
