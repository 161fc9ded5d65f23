/** docs/api.md, from the types that the build derives from worker/. `npm run docs` writes it; test/unit/docs.test.ts checks it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const types = join(import.meta.dirname, '../dist/worker');
const page = join(import.meta.dirname, '../docs/api.md');

interface Declaration {
  readonly comment: string;
  readonly code: string;
}

/** The declaration of `name` in a file of types, from the line that begins it to the line that ends it. */
function declarationOf(text: string, name: string): Declaration {
  const begin = new RegExp(
    `^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|function|const) ${name}\\b`,
    'mu',
  );
  const lines = text.split('\n');
  const first = lines.findIndex((line) => begin.test(line));
  if (first < 0) throw new Error(`the types declare no ${name}; is dist/ built from these sources?`);
  const has = (line: number, start: string) => lines[line]?.startsWith(start) === true;
  let last = first;
  if (lines[first]?.endsWith('{') === true) {
    while (!has(last, '}')) last++;
  } else {
    while (has(last + 1, `export declare function ${name}`)) last++; // overloads
  }
  let comment = first;
  if (lines[first - 1]?.trim().endsWith('*/') === true) {
    do comment--;
    while (!has(comment, '/**'));
  }
  return {
    comment: proseOf(lines.slice(comment, first)),
    code: lines.slice(first, last + 1).join('\n'),
  };
}

/** The text of a documentation comment; `@throws` becomes a sentence. */
function proseOf(lines: readonly string[]): string {
  const text = lines.map((line) => line.replace(/^\/\*\* ?| ?\*\/$|^ \* ?/gu, '').trimEnd());
  return text
    .join('\n')
    .replace(/^@throws (\S+)/gmu, 'Throws `$1`:')
    .trim();
}

/** Nothing that is private or for the package itself. */
function publicPart(code: string): string {
  return code
    .replace(/^ {4}#private;\n/mu, '')
    .replace(/^ {4}\/\*\* For `\w+`; programs[^]*?constructor\([^]*?;\n/mu, '')
    .replace(/^export declare |^export |^declare /gmu, '')
    .replaceAll('    ', '  ');
}

/** The lists that a type is made of: `(typeof list)[number]`. */
function listsOf(text: string, code: string): string[] {
  return [...code.matchAll(/typeof (\w+)/gu)].map(([, name = '']) => publicPart(declarationOf(text, name).code));
}

export function apiPage(): string {
  const index = readFileSync(join(types, 'index.d.ts'), 'utf8');
  const sections: string[] = [];
  for (const [, names = '', file = ''] of index.matchAll(
    /^export (?:type )?\{ (.*) \} from '\.\/(.*)\.(?:ts|js)';$/gmu,
  )) {
    const text = readFileSync(join(types, `${file}.d.ts`), 'utf8');
    for (const name of names.split(', ')) {
      const { comment, code } = declarationOf(text, name);
      const block = [publicPart(code), ...listsOf(text, code)].join('\n');
      sections.push([`## ${name}`, comment, `\`\`\`ts\n${block}\n\`\`\``].filter((part) => part !== '').join('\n\n'));
    }
  }
  const links = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('[contents]'));
  const [link = ''] = links;
  const head = [
    '# The TypeScript interface, in full',
    "What `import … from 'ncclrun'` gives, written from the sources (`npm run docs`). [programs.md](programs.md) explains it.",
  ];
  return `${[link, ...head, ...sections, link].join('\n\n')}\n`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(page, apiPage());
