/** A host's files and answers of nvidia-smi as they were recorded on a real machine, with what a test plants, below a directory. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import * as v from 'valibot';

const recordedTree = v.object({ links: v.record(v.string(), v.string()), files: v.record(v.string(), v.string()) });

export interface Planted {
  /** Files instead of the recorded ones, or beside them; null: they are gone. */
  readonly files?: Readonly<Record<string, string | Buffer | null>>;
  /** Links beside the recorded ones: path, and where it leads. */
  readonly links?: Readonly<Record<string, string>>;
  /** Words that nvidia-smi says instead, each the first time that they come. */
  readonly said?: readonly (readonly [recorded: string | RegExp, instead: string])[];
  /** nvidia-smi ends with this status and says nothing. */
  readonly status?: number;
}

const fixtures = join(import.meta.dirname, '../unit/fixtures/recorded-hosts');

/** Puts `bin/nvidia-smi` below `root` too, which has to come first in the PATH. */
export function writeRecordedHost(root: string, name: string, planted: Planted = {}): void {
  const recorded = join(fixtures, name);
  const tree = v.parse(recordedTree, JSON.parse(readFileSync(join(recorded, 'tree.json'), 'utf8')));
  writeTree(root, { ...tree.files, ...planted.files }, { ...tree.links, ...planted.links });
  let script = `#!/bin/sh\n`;
  if (planted.status !== undefined) script += `exit ${planted.status}\n`;
  for (const file of ['nvidia-smi.xml', 'nvlink-status.txt', 'nvlink-errorcounters.txt']) {
    let text = readFileSync(join(recorded, file), 'utf8');
    for (const [words, instead] of planted.said ?? []) text = text.replace(words, instead);
    writeFileSync(join(root, file), text);
  }
  script += `case "$*" in
  '-q -x') cat ${root}/nvidia-smi.xml;;
  'nvlink --status') cat ${root}/nvlink-status.txt;;
  'nvlink --errorcounters') cat ${root}/nvlink-errorcounters.txt;;
  *) exit 2;;
esac\n`;
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'bin/nvidia-smi'), script);
  chmodSync(join(root, 'bin/nvidia-smi'), 0o755);
}

/** Links lead to places below `root`. */
export function writeTree(
  root: string,
  files: Readonly<Record<string, string | Buffer | null>>,
  links: Readonly<Record<string, string>> = {},
): void {
  for (const [path, to] of Object.entries(links)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    mkdirSync(join(root, to), { recursive: true });
    symlinkSync(relative(join(root, dirname(path)), join(root, to)), join(root, path));
  }
  for (const [path, content] of Object.entries(files)) {
    if (content === null) continue;
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), typeof content === 'string' ? `${content}\n` : content);
  }
}
