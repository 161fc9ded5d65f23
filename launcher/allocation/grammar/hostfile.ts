/**
 * Hostfiles in every grammar we know. They agree on more than they differ in, so one line grammar reads them all:
 *
 *     line    = hosts settings                       a # begins a comment
 *     hosts   = host { "," host }                    Slurm, pdsh, Horovod's -H
 *     host    = ["^"] [user "@"] name [":" slots]    MPICH; ^ leaves the host out (Open MPI)
 *     name    = text and ranges, node[01-04,07], or [IPv6 address]
 *     settings = { key "=" value }                   Open MPI, DeepSpeed, Horovod: slots=N …; Slurm: TASKS_PER_NODE=2(x3),1
 *              | slots queue "@" host processors      Grid Engine's pe_hostfile
 *
 * What says one thing twice is refused with both ways to say it.
 */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseHostWord, refuseNumber } from './host-name.ts';
import { parseSlots } from './number.ts';
import { explainedByKind } from './other-files.ts';
import { Reading } from './reading.ts';
import { type LineSettings, parseSettings } from './settings.ts';
import { checkTasks } from './tasks-per-node.ts';
import { splitOutsideBrackets, tail, type Token, tokenize } from './tokenize.ts';

/** The mentions of hosts in `content`, in order. `source` names the file in errors. Throws a FailureError (hostfile). */
export function parseHostfile(content: string, source: string, reading = new Reading()): HostEntry[] {
  const lines = content.replace(/^\uFEFF/u, '').split(/\r\n|[\r\n]/u);
  try {
    return lines.flatMap((text, index) => {
      const [hosts, ...settings] = tokenize(text);
      const line = { source, line: index + 1, text };
      return hosts === undefined ? [] : parseLine(hosts, ofGridEngine(settings) ?? settings, line, reading);
    });
  } catch (error) {
    throw explainedByKind(error, lines);
  }
}

/** What Grid Engine's pe_hostfile has behind a host, `8 all.q@node1 UNDEFINED`, as a setting; null for another line. */
function ofGridEngine(settings: readonly Token[]): readonly Token[] | null {
  const [slots, queue, , ...more] = settings;
  if (slots === undefined || !/^[0-9]+$/u.test(slots.text) || queue?.text.includes('@') !== true || more.length > 0)
    return null;
  return [{ text: 'slots', offset: slots.offset }, { text: '=', offset: slots.offset }, slots];
}

function parseLine(hosts: Token, rest: readonly Token[], line: SourceLine, reading: Reading): HostEntry[] {
  const groups = splitOutsideBrackets(hosts, ',').map((word) => readWord(word, line, reading));
  const settings = parseSettings(rest, hosts.text, line);
  for (const group of groups) checkAgreement(group, rest, line);

  const used = groups.filter(({ exclude }) => !exclude).reduce((sum, { names }) => sum + names.length, 0);
  if (settings.tasks !== null) checkTasks(settings.tasks, used, line);
  let index = 0;
  return groups.flatMap((group) => {
    return group.names.map((name) => {
      const slots = settings.tasks === null ? settings.slots : (settings.tasks.counts[index] ?? null);
      if (!group.exclude) index += 1;
      return entryOf(name, group, { ...settings, slots });
    });
  });
}

interface Group {
  readonly names: readonly string[];
  readonly user: string | null;
  readonly range: string | null;
  readonly slots: number | null;
  readonly exclude: boolean;
  readonly position: HostEntry['position'];
  readonly word: Token;
}

function readWord(word: Token, line: SourceLine, reading: Reading): Group {
  refuseNumber(word, line);
  const exclude = word.text.startsWith('^');
  const host = parseHostWord(exclude ? tail(word, 1) : word, line, reading);
  const position = positionIn(line, word.offset, word.text.length);
  if (exclude && host.count !== null) {
    throw hostfileError('an excluded host has no count', position, `write ${word.text.split(':', 1)[0]}`);
  }
  const slots = host.count === null ? null : parseSlots(host.count, 'the number of slots', line);
  return { names: host.names, user: host.user, range: host.range, slots, exclude, position, word };
}

/** Throws a FailureError (hostfile) where the settings repeat or contradict what the word says. */
function checkAgreement(group: Group, rest: readonly Token[], line: SourceLine): void {
  const [first] = rest;
  if (first === undefined) return;
  if (group.exclude) {
    const { text } = group.word;
    throw hostfileError('an excluded host has no settings', group.position, `write ${text} alone on its line`);
  }
  const twice = rest.find(({ text }) => /^(slots|count|cpu|(slurm_)?tasks_per_node)$/iu.test(text));
  if (group.slots !== null && twice !== undefined) {
    const message = `"${twice.text}" after ${group.word.text} has no meaning`;
    const remedy = 'state slots in one way: host:4, or host slots=4';
    throw hostfileError(message, positionIn(line, twice.offset, twice.text.length), remedy);
  }
  const user = rest.find(({ text }) => /^user/iu.test(text));
  if (group.user !== null && user !== undefined) {
    const position = positionIn(line, user.offset, user.text.length);
    throw hostfileError(`${group.word.text} has its user already`, position, 'state the user in one way');
  }
}

function entryOf(name: string, group: Group, { slots, maxSlots, port, user }: LineSettings): HostEntry {
  return {
    kind: group.exclude ? 'exclude' : 'use',
    name,
    user: group.user ?? user,
    port,
    slots: group.slots ?? slots,
    colonCount: group.slots,
    maxSlots,
    range: group.range,
    position: group.position,
  };
}
