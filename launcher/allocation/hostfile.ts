/**
 * Hostfiles in every grammar we know, told apart line by line: a line is offered to one grammar after the other and belongs to the
 * first that does not answer null (a grammar throws where the line is its own but wrong).
 */
import { hostfileError, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseMpichLine } from './grammar-mpich.ts';
import { parseOpenMpiLine } from './grammar-openmpi.ts';
import { type Token, tokenize } from './tokenize.ts';

type Grammar = (tokens: readonly Token[], line: SourceLine) => HostEntry | null;

const grammars: readonly Grammar[] = [parseOpenMpiLine, parseMpichLine];

/** 100,000 hosts need about 3 MB; something far larger is not a hostfile. */
const maximumLength = 64 * 1024 * 1024;

/** The mentions of hosts in `content`, in order. `source` names the file in errors. Throws a FailureError (hostfile). */
export function parseHostfile(content: string, source: string): HostEntry[] {
  if (content.length > maximumLength) {
    throw hostfileError(`${source} has ${content.length} characters`, null, 'a hostfile has one host per line');
  }
  const entries: HostEntry[] = [];
  const lines = content.replace(/^\uFEFF/u, '').split(/\r?\n/u);
  for (const [index, text] of lines.entries()) {
    const tokens = tokenize(text);
    if (tokens.length === 0) continue;
    const line: SourceLine = { source, line: index + 1, text };
    const entry = firstThatParses(tokens, line);
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

function firstThatParses(tokens: readonly Token[], line: SourceLine): HostEntry | null {
  for (const grammar of grammars) {
    const entry = grammar(tokens, line);
    if (entry !== null) return entry;
  }
  return null;
}
