/** Writes elements as NCCL does: two spaces for each level, an element without children in one tag. */
import type { Child, Element } from './element.ts';

export function writeXml(root: Element, comments: readonly string[] = []): string {
  const lines = comments.map((text) => `<!--${text}-->`);
  write(root, '', lines);
  return `${lines.join('\n')}\n`;
}

function write(child: Child, indent: string, lines: string[]): void {
  if (child.kind === 'comment') {
    lines.push(`${indent}<!--${child.text}-->`);
    return;
  }
  const { name, attributes, children } = child;
  const tag = [name, ...Array.from(attributes, ([key, value]) => `${key}="${escaped(value)}"`)].join(' ');
  if (children.length === 0) {
    lines.push(`${indent}<${tag}/>`);
    return;
  }
  lines.push(`${indent}<${tag}>`);
  for (const below of children) write(below, `${indent}  `, lines);
  lines.push(`${indent}</${name}>`);
}

function escaped(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
