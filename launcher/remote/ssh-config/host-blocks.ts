/**
 * Which parts of the ssh configuration's files mean a host, so that ssh need not be asked about every host: those that the same blocks mean
 * have the same settings, but for the name. A block that only gives a HostName makes no difference else.
 * What is not plain (Match, Include for some hosts, quotes, tokens that make settings differ by name) is left to ssh.
 */
import { matchesList } from '../shell/pattern.ts';

interface ConfigurationFile {
  readonly path: string;
  /** Null: we cannot read it. */
  readonly text: string | null;
}

/** What a host has of the files. */
interface Share {
  /** Hosts of one kind have the same settings, but for the name. */
  readonly kind: string;
  /** What ssh calls the host. */
  readonly hostName: string;
}

/** From a Host line, or a file's begin, to the next one. */
interface Block {
  readonly origin: string;
  readonly patterns: readonly string[];
  hostName: string | null;
  /** True if it has settings other than HostName. */
  hasOtherSettings: boolean;
}

const everyone: readonly string[] = ['*'];
/** A keyword and its value. Others, with an equals sign for example, are as good for ssh. */
const plainLine = /^\s*([a-z0-9]+)\s+(\S.*?)\s*$/i;
/** Case: patterns mind it, names do not. */
const plainName = /^[a-z0-9._:-]+$/;
const plainPatterns = /^[a-z0-9._:*?!\s-]+$/;
const plainHostName = /^(?:[a-z0-9._:-]|%h)+$/;
/** Settings that ssh prints with their %tokens, or that do not matter to us. */
const expandedLater = [
  'identityfile',
  'certificatefile',
  'controlpath',
  'localcommand',
  'remotecommand',
  'proxycommand',
];

export class HostBlocks {
  readonly #blocks: readonly Block[];

  private constructor(blocks: readonly Block[]) {
    this.#blocks = blocks;
  }

  /** Null if only ssh can determine which hosts are alike. */
  static read(files: readonly ConfigurationFile[]): HostBlocks | null {
    const blocks: Block[] = [];
    for (const { path, text } of files) {
      const read = text === null ? null : readBlocks(path, text);
      if (read === null) return null;
      blocks.push(...read);
    }
    return new HostBlocks(blocks);
  }

  /** Null: ssh has to be asked about this host. */
  of(name: string): Share | null {
    if (!plainName.test(name)) return null;
    const blocks = this.#blocks.filter(({ patterns }) => matchesList(patterns, name));
    const [hostName = '%h', ...more] = blocks.flatMap((block) => block.hostName ?? []);
    // Which one holds is a matter of their order, through all files that include each other.
    if (more.length > 0) return null;
    const otherOrigins = new Set(blocks.filter(({ hasOtherSettings }) => hasOtherSettings).map(({ origin }) => origin));
    return { kind: [...otherOrigins].join('\n'), hostName: hostName.replaceAll('%h', name) };
  }
}

function readBlocks(path: string, text: string): Block[] | null {
  let block: Block = { origin: path, patterns: everyone, hostName: null, hasOtherSettings: false };
  const blocks = [block];
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, word = '', value = ''] = plainLine.exec(line) ?? [];
    const patterns = patternsOf(word.toLowerCase(), value);
    if (patterns !== null) {
      block = { origin: `${path}:${index + 1}`, patterns, hostName: null, hasOtherSettings: false };
      blocks.push(block);
    } else if (!take(block, word.toLowerCase(), value)) return null;
  }
  return blocks;
}

/** Host patterns of the following lines; null if the line has none or we cannot parse them. */
function patternsOf(keyword: string, value: string): readonly string[] | null {
  if (keyword === 'match' && value.toLowerCase() === 'all') return everyone;
  if (keyword !== 'host') return null;
  if (value === '"*"') return everyone;
  return plainPatterns.test(value) ? value.split(/\s+/) : null;
}

/** False: it is not plain. */
function take(block: Block, keyword: string, value: string): boolean {
  switch (keyword) {
    case '':
    case 'host':
    case 'match':
      return false;
    case 'include':
      return block.patterns.join(' ') === '*' && !/[%"\\]/.test(value);
    case 'hostname':
      // The first one of a block holds.
      block.hostName ??= value;
      return plainHostName.test(value);
    default:
      block.hasOtherSettings = true;
      return !value.includes('%') || expandedLater.includes(keyword);
  }
}
