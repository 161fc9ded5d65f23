/** Text for a terminal of a given width. */

/** `text` in lines of at most `width` columns where its words allow, each after `indent`. */
export function wrapped(text: string, indent: string, width: number): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    const longer = line === indent ? line + word : `${line} ${word}`;
    if (longer.length > width && line !== indent) {
      lines.push(line);
      line = indent + word;
    } else {
      line = longer;
    }
  }
  return `${[...lines, line].join('\n')}\n`;
}
