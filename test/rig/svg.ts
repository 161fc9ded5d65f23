/** What stands where in a picture of ours. */
import { parseXml, XmlElement, XmlText } from '@rgrove/parse-xml';

export interface Shape {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** The class of the nearest group. */
  readonly group: string;
  /** Text of its own. */
  readonly text: string;
}

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Every element, outer ones first. Throws where the text is no XML. */
export function shapesOf(svg: string): Shape[] {
  const { root } = parseXml(svg);
  return root === null ? [] : shapesBelow(root, '');
}

function shapesBelow(from: XmlElement, group: string): Shape[] {
  const { name, attributes, children } = from;
  const inner = name === 'g' ? (attributes['class'] ?? group) : group;
  const text = children.map((child) => (child instanceof XmlText ? child.text : '')).join('');
  const below = children.flatMap((child) => (child instanceof XmlElement ? shapesBelow(child, inner) : []));
  return [{ name, attributes, group: inner, text }, ...below];
}

export function rectangle({ attributes }: Shape): Rectangle {
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((key) => Number(attributes[key] ?? 0));
  return { x: x ?? 0, y: y ?? 0, width: width ?? 0, height: height ?? 0 };
}

/** Touching is no overlapping; coordinates are rounded to tenths. */
export function overlap(one: Rectangle, other: Rectangle): boolean {
  const apart = 0.11;
  return (
    one.x + one.width > other.x + apart &&
    other.x + other.width > one.x + apart &&
    one.y + one.height > other.y + apart &&
    other.y + other.height > one.y + apart
  );
}
