/**
 * NCCL's configuration files: lines NAME=value, of which the environment lacks the name. The file that NCCL_CONF_FILE names, else ~/.nccl.conf,
 * stands above /etc/nccl.conf. The two that nobody has named are obeyed only if nobody but the user and root can have written them. Only names
 * that begin with NCCL_ count: another one, as LD_PRELOAD, would do more than configure NCCL. The engine does the same
 * (native/base/variables.h).
 */
import { join } from 'node:path';
import { homeDirectory } from './home-directory.ts';
import { messageOf } from './message-of.ts';
import { ownUser } from './own-user.ts';
import { readFileUpTo } from './read-file.ts';
import { readTrusted } from './trusted-file.ts';

const MAX_BYTES = 1024 * 1024;

interface NcclConfiguration {
  /** What the environment lacks. */
  readonly variables: ReadonlyMap<string, string>;
  /** A sentence for each file that is there and not obeyed. */
  readonly notes: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `system`: the file for every user. */
function ncclConfiguration(environment: Environment, system = '/etc/nccl.conf'): NcclConfiguration {
  const notes: string[] = [];
  const variables = new Map<string, string>();
  const add = (content: string | null): void => {
    for (const [name, value] of assignments(content ?? ''))
      if (environment[name] === undefined && !variables.has(name)) variables.set(name, value);
  };
  const named = environment['NCCL_CONF_FILE'] ?? '';
  const home = homeDirectory();
  if (named !== '') add(readNamed(named, notes));
  else if (home !== null) add(readUnnamed(join(home, '.nccl.conf'), notes));
  add(readUnnamed(system, notes));
  return { variables, notes };
}

let lastNotes: readonly string[] = [];

/** Puts the variables into this process's environment: whatever it starts or plans finds them there. */
export function takeNcclConfiguration(): readonly string[] {
  const { variables, notes } = ncclConfiguration(process.env);
  for (const [name, value] of variables) process.env[name] = value;
  lastNotes = notes;
  return notes;
}

/** What takeNcclConfiguration() has found. */
export function configurationNotes(): readonly string[] {
  return lastNotes;
}

function readNamed(path: string, notes: string[]): string | null {
  try {
    return readFileUpTo(path, MAX_BYTES).toString('utf8');
  } catch (error) {
    notes.push(`ignored NCCL_CONF_FILE=${path}: ${messageOf(error)}`);
    return null;
  }
}

function readUnnamed(path: string, notes: string[]): string | null {
  const read = readTrusted(path, ownUser(), MAX_BYTES);
  if (read.kind === 'content') return read.content;
  if (read.kind === 'missing') return null;
  const remedy = 'make it and the directories above it yours or root’s, and writable by nobody else';
  notes.push(
    `ignored ${path}: ${read.kind === 'unreadable' ? `it cannot be read (${read.code})` : `${read.reason}; to use it, ${remedy}`}`,
  );
  return null;
}

function assignments(content: string): (readonly [string, string])[] {
  return content.split('\n').flatMap((line) => {
    const [, name, value] = /^(NCCL_\w+)=(.*?)\r?$/u.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
}
