/** How wide a text becomes at most: the viewer's font is not known, so this is that of wide ones, DejaVu Sans and Verdana. */
export function textWidth(content: string, size: number, bold = false): number {
  const units = Array.from(content, unitsOf).reduce((sum, one) => sum + one, 0);
  return units * size * (bold ? 1.1 : 1);
}

/** Parts of the font's size. */
function unitsOf(character: string): number {
  if (/[il.,:;'|! jtfr()/-]/u.test(character)) return 0.39;
  if (/[mwMW@%—]/u.test(character)) return 0.97;
  if (/[A-Z×]/u.test(character)) return 0.71;
  return 0.63;
}
