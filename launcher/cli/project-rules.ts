/**
 * What ./ncclrun.json may set. The file is the user's own, but what is in it may have come with somebody else's project: a clone, an archive. So it must
 * not decide which programs run, nor have files written elsewhere than below its directory, nor name files that others can change.
 */
import { resolve } from 'node:path';
import { untrustedPath } from '../../control/trusted-path.ts';
import type { PatternPart } from '../model/output-pattern.ts';
import type { ProjectRule } from '../model/option.ts';
import { outputRequest } from './output-request.ts';
import { whyOutside } from './outside.ts';
import { whyNotExported } from './project-exports.ts';

/** Where a project file lies, and whose settings it is to give. */
export interface Project {
  /** Absolute, without symbolic links. */
  readonly directory: string;
  readonly uid: number;
}

/** Null, or the sentence why a project file may not give an option this value. */
export function whyNotInProject(rule: ProjectRule, value: string, project: Project): string | null {
  switch (rule) {
    case 'any':
      return null;
    case 'never':
      return 'a project file may not decide which programs run';
    case 'variables':
      return whyNotExported(value);
    case 'own-file':
      return value === '-' ? null : whyOthers(value, project);
    case 'hosts':
      return first(
        value.split(',').filter((word) => word.trim().startsWith('^')),
        (word) => whyOthers(word.trim().slice(1), project),
      );
    case 'path':
      return whyElsewhere([{ text: value }], project);
    case 'output':
      return first(outputPatterns(value), (parts) => whyElsewhere(parts, project));
    default:
      return rule satisfies never;
  }
}

function whyOthers(path: string, { directory, uid }: Project): string | null {
  const why = untrustedPath(resolve(directory, path), uid);
  return why === null ? null : `a project file may not name a file that is not yours: ${why}`;
}

/** A path that is written or entered. */
function whyElsewhere(parts: readonly PatternPart[], { directory, uid }: Project): string | null {
  const outside = whyOutside(directory, parts);
  if (outside !== null) return `a project file may only name paths below its directory, and ${outside}`;
  const [begin] = parts;
  const literal = begin !== undefined && 'text' in begin ? begin.text : '';
  // What stands before the first field, down to a directory if fields follow.
  const fixed = parts.length > 1 ? literal.slice(0, literal.lastIndexOf('/') + 1) : literal;
  return whyOthers(fixed, { directory, uid });
}

/** None for an invalid value of --output: its user reports the error. */
function outputPatterns(value: string): (readonly PatternPart[])[] {
  try {
    return outputRequest([value], null).files.map(({ parts }) => parts);
  } catch {
    return [];
  }
}

function first<Item>(items: readonly Item[], why: (item: Item) => string | null): string | null {
  for (const item of items) {
    const found = why(item);
    if (found !== null) return found;
  }
  return null;
}
