/** Random hostfiles of every grammar, each with the hosts that it must mean. */
import type { GrammarName } from '../../launcher/allocation/print/grammar-names.ts';
import type { HostSlots } from '../../launcher/model/types.ts';
import { shuffled, type Random } from './random.ts';

/** What a hostfile says of a host. */
export type StatedHost = Pick<HostSlots, 'name' | 'user' | 'port' | 'slots' | 'maxSlots'>;

export interface RandomHostfile {
  readonly text: string;
  readonly hosts: readonly StatedHost[];
}

export const hostfileGrammars = [
  'openmpi',
  'mpich',
  'deepspeed',
  'horovod',
  'slurm',
  'pdsh',
] as const satisfies GrammarName[];
export type HostfileGrammar = (typeof hostfileGrammars)[number];

export function randomHostfile(grammar: HostfileGrammar, random: Random): RandomHostfile {
  return generators[grammar](random);
}

const generators: Readonly<Record<HostfileGrammar, (random: Random) => RandomHostfile>> = {
  openmpi: (random) =>
    mentions(random, { user: true, port: true, maxSlots: true, optional: true, address: true }, openMpiLine),
  mpich: (random) => mentions(random, { user: true, optional: true, address: true }, mpichLine),
  deepspeed: (random) => mentions(random, {}, (host) => `${host.name} slots=${host.slots ?? 1}`),
  horovod: (random) => {
    const { hosts } = mentions(random, {}, () => '');
    return { text: hosts.map(({ name, slots }) => `${name}:${slots ?? 1}`).join(','), hosts };
  },
  slurm: (random) => {
    const { words, names } = ranges(random);
    const counts = names.map(() => 1 + random(3));
    const hosts = names.map((name, index) => said(name, { slots: counts[index] ?? 1 }));
    if (random(4) === 0) return { text: words.join(','), hosts: names.map((name) => said(name, {})) };
    return {
      text: `${words.join(',')} TASKS_PER_NODE=${counts.map((count) => tasks(count, random)).join(',')}`,
      hosts,
    };
  },
  pdsh: (random) => {
    const { words, names } = ranges(random);
    const text = random(2) === 0 ? words.join(',') : words.map((word) => withComment(word, random)).join('\n');
    return { text, hosts: names.map((name) => said(name, {})) };
  },
};

/** Slurm writes a run as 4(x3), but one of one as 4 or 4(x1). */
function tasks(count: number, random: Random): string {
  return random(3) === 0 ? `${count}(x1)` : String(count);
}

interface Wishes {
  readonly user?: boolean;
  readonly port?: boolean;
  readonly maxSlots?: boolean;
  /** Counts may be missing. */
  readonly optional?: boolean;
  readonly address?: boolean;
}

/** Hosts with several mentions each, in any order. */
function mentions(random: Random, wishes: Wishes, line: (host: StatedHost, random: Random) => string): RandomHostfile {
  const names = randomNames(random, wishes.address ?? false);
  const parts = names.flatMap((name): StatedHost[] => {
    const times = 1 + (random(4) === 0 ? random(3) : 0);
    const stated = {
      user: wishes.user && random(3) === 0 ? pick(['alice', 'bob@corp', '_x.y'], random) : null,
      port: wishes.port && random(4) === 0 ? 1 + random(65_535) : null,
    };
    return Array.from({ length: times }, () => {
      const slots = wishes.optional && random(3) === 0 ? null : 1 + random(64);
      const maxSlots = wishes.maxSlots && random(3) === 0 ? (slots ?? 1) + random(8) : null;
      return said(name, { ...stated, slots, maxSlots });
    });
  });
  const ordered = shuffled(parts, random);
  const text = ordered.map((part) => withComment(line(part, random), random)).join(random(5) === 0 ? '\r\n' : '\n');
  return { text, hosts: summed(ordered) };
}

function openMpiLine(host: StatedHost, random: Random): string {
  const settings = [
    ...(host.slots === null ? [] : [[pick(['slots', 'count', 'cpu'], random), host.slots]]),
    ...(host.maxSlots === null ? [] : [[pick(['max_slots', 'max-slots', 'slots-max'], random), host.maxSlots]]),
    ...(host.port === null ? [] : [['port', host.port]]),
  ].map(([key, value]) => `${key}${pick(['=', ' = ', ' =\t'], random)}${value}`);
  return [login(host), ...shuffled(settings, random)].join(pick([' ', '\t', '   '], random));
}

function mpichLine(host: StatedHost): string {
  return host.slots === null ? login(host) : `${login(host)}:${host.slots}`;
}

function login({ name, user }: StatedHost): string {
  const host = name.includes(':') ? `[${name}]` : name;
  return user === null ? host : `${user}@${host}`;
}

function withComment(line: string, random: Random): string {
  return [line, line, `  ${line}  # why`, `# before\n${line}`, `\n${line}#x`][random(5)] ?? line;
}

/** What several mentions come to: a mention without a count is one slot beside others. */
function summed(parts: readonly StatedHost[]): StatedHost[] {
  const names = [...new Set(parts.map(({ name }) => name))];
  return names.map((name) => {
    const own = parts.filter((part) => part.name === name);
    const [first = said(name, {})] = own;
    if (own.length === 1) return first;
    const limits = own.map(({ maxSlots }) => maxSlots);
    return {
      ...first,
      slots: own.reduce((sum, { slots }) => sum + (slots ?? 1), 0),
      maxSlots: limits.includes(null) ? null : limits.reduce<number>((sum, limit) => sum + (limit ?? 0), 0),
    };
  });
}

function said(name: string, rest: Partial<StatedHost>): StatedHost {
  return { name, user: null, port: null, slots: null, maxSlots: null, ...rest };
}

function randomNames(random: Random, address: boolean): string[] {
  const width = 1 + random(3);
  const count = 1 + random(12);
  const styles = [
    (index: number) => `node${String(index).padStart(width, '0')}`,
    (index: number) => `r${random(3)}-n${index}x`,
    (index: number) => `10.0.${random(3)}.${index}`,
    (index: number) => `H_${index}.cluster.example`,
    (index: number) =>
      address ? pick([`fe80::${index}%eth0`, `2001:db8::${index}`, `::ffff:10.1.2.${index}`], random) : `v${index}`,
  ];
  const start = random(120);
  const style = pick(styles, random);
  const other = pick(styles, random);
  const names = Array.from({ length: count }, (_, index) => (random(4) === 0 ? other : style)(start + index));
  return [...new Set(names)];
}

/** Words with ranges, and the names they stand for; no name twice. */
function ranges(random: Random): { words: string[]; names: string[] } {
  const words: string[] = [];
  const names: string[] = [];
  for (let index = 0; index <= random(5); index += 1) {
    const prefix = `${pick(['a', 'node', 'x.y-'], random)}${'bcdefgh'[index] ?? 'z'}`;
    const suffix = pick(['', '', 'c', '-ib'], random);
    const width = 1 + random(3);
    const first = random(90);
    const numbers = Array.from({ length: 1 + random(12) }, (_, step) => first + step + Math.floor(step / 4) * 2);
    const padded = numbers.map((number) => String(number).padStart(width, '0'));
    const rack = random(3) === 0 ? ['1', '2'] : [''];
    words.push(`${prefix}${rack.length > 1 ? '[1-2]-' : ''}[${listed(numbers, padded)}]${suffix}`);
    names.push(
      ...rack.flatMap((one) => padded.map((number) => `${prefix}${one}${one === '' ? '' : '-'}${number}${suffix}`)),
    );
  }
  return { words, names };
}

/** Every run of successors as first-last, unless it is alone. */
function listed(numbers: readonly number[], padded: readonly string[]): string {
  const starts = numbers.flatMap((number, index) => (numbers[index - 1] === number - 1 ? [] : [index]));
  return starts
    .map((start, index) => {
      const end = (starts[index + 1] ?? numbers.length) - 1;
      return start === end ? padded[start] : `${padded[start]}-${padded[end]}`;
    })
    .join(',');
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random(items.length)];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
}
