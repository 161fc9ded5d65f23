/** Hosts → text in each grammar. What a grammar has no words for is left out of the text and told. */
import type { HostSlots } from '../../model/types.ts';
import { printTasksPerNode } from '../grammar/tasks-per-node.ts';
import { foldNames } from '../../text/fold-names.ts';
import type { GrammarName } from './grammar-names.ts';

/** What a host may have and a grammar may have no words for. */
type Property = 'user' | 'port' | 'slots' | 'maxSlots' | 'devices' | 'address';

interface Grammar {
  readonly cannot: readonly Property[];
  /** A host without a number of slots cannot be written. */
  readonly needsSlots: boolean;
  print(hosts: readonly HostSlots[]): string;
}

interface Printed {
  readonly text: string;
  /** A sentence for each property that is lost, with the hosts that lose it. */
  readonly lost: readonly string[];
}

export function printHosts(hosts: readonly HostSlots[], name: GrammarName): Printed {
  const grammar = grammars[name];
  const lost = grammar.cannot.flatMap((property) => {
    const losing = hosts.filter((host) => has[property](host));
    return losing.length === 0 ? [] : [`not written, ${name} ${words[property]}: ${shortList(losing)}`];
  });
  const uncounted = grammar.needsSlots ? hosts.filter(({ slots }) => slots === null) : [];
  if (uncounted.length > 0) lost.push(`${name} needs a number of slots: ${shortList(uncounted)} (--slots N gives one)`);
  const written = grammar.cannot.includes('address') ? hosts.filter((host) => !has.address(host)) : hosts;
  return { text: written.length === 0 ? '' : grammar.print(written), lost };
}

const has: Readonly<Record<Property, (host: HostSlots) => boolean>> = {
  user: ({ user }) => user !== null,
  port: ({ port }) => port !== null,
  slots: ({ slots }) => slots !== null,
  maxSlots: ({ maxSlots }) => maxSlots !== null,
  devices: ({ devices }) => devices !== null,
  address: ({ name }) => name.includes(':'),
};

const words: Readonly<Record<Property, string>> = {
  user: 'has no users',
  port: 'has no ports',
  slots: 'has no numbers of slots',
  maxSlots: 'has no max_slots',
  devices: 'does not say which slots (give --include along)',
  address: 'has no IPv6 addresses',
};

function shortList(hosts: readonly HostSlots[]): string {
  const folded = foldNames(hosts.map(({ name }) => name));
  const rest = folded.length - 8;
  return folded.slice(0, 8).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

const grammars: Readonly<Record<GrammarName, Grammar>> = {
  openmpi: {
    cannot: ['devices'],
    needsSlots: false,
    print: (hosts) => lines(hosts.map((host) => `${login(host)}${settings(host)}`)),
  },
  mpich: {
    cannot: ['port', 'maxSlots', 'devices'],
    needsSlots: false,
    print: (hosts) => lines(hosts.map(withCount)),
  },
  deepspeed: {
    cannot: ['user', 'port', 'maxSlots', 'devices', 'address'],
    needsSlots: true,
    print: (hosts) => lines(hosts.map((host) => `${bracketed(host.name)}${slotsSetting(host)}`)),
  },
  horovod: {
    cannot: ['user', 'port', 'maxSlots', 'devices', 'address'],
    needsSlots: true,
    print: (hosts) => lines([hosts.map((host) => withCount({ ...host, user: null })).join(',')]),
  },
  slurm: {
    cannot: ['user', 'port', 'maxSlots', 'devices', 'address'],
    needsSlots: false,
    print: slurmText,
  },
  pdsh: {
    cannot: ['port', 'slots', 'maxSlots', 'devices', 'address'],
    needsSlots: false,
    print: (hosts) => lines([pdshWords(hosts).join(',')]),
  },
  json: {
    cannot: [],
    needsSlots: false,
    print: (hosts) => `${JSON.stringify({ schemaVersion: 1, hosts })}\n`,
  },
};

function lines(list: readonly string[]): string {
  return list.map((line) => `${line}\n`).join('');
}

function bracketed(name: string): string {
  return name.includes(':') ? `[${name}]` : name;
}

function login({ name, user }: HostSlots): string {
  return user === null ? bracketed(name) : `${user}@${bracketed(name)}`;
}

function withCount(host: HostSlots): string {
  return host.slots === null ? login(host) : `${login(host)}:${host.slots}`;
}

function slotsSetting({ slots }: HostSlots): string {
  return slots === null ? '' : ` slots=${slots}`;
}

function settings(host: HostSlots): string {
  const maximum = host.maxSlots === null ? '' : ` max_slots=${host.maxSlots}`;
  return `${slotsSetting(host)}${maximum}${host.port === null ? '' : ` port=${host.port}`}`;
}

/** A list for hosts with counts and one for those without: Slurm has a count for all or for none. */
function slurmText(hosts: readonly HostSlots[]): string {
  return lines(
    runsOf(hosts, ({ slots }) => String(slots !== null)).map((run) => {
      const list = foldNames(
        run.map(({ name }) => bracketed(name)),
        'end',
      ).join(',');
      const counts = run.flatMap(({ slots }) => (slots === null ? [] : [slots]));
      return counts.length === 0 ? list : `${list} TASKS_PER_NODE=${printTasksPerNode(counts)}`;
    }),
  );
}

/** A range has one user. */
function pdshWords(hosts: readonly HostSlots[]): string[] {
  return runsOf(hosts, ({ user }) => user ?? '').flatMap((run) => {
    const user = run[0]?.user ?? null;
    return foldNames(run.map(({ name }) => bracketed(name))).map((word) => (user === null ? word : `${user}@${word}`));
  });
}

/** Neighbours of the same kind together. */
function runsOf(hosts: readonly HostSlots[], kindOf: (host: HostSlots) => string): HostSlots[][] {
  const runs: { readonly kind: string; readonly hosts: HostSlots[] }[] = [];
  for (const host of hosts) {
    const kind = kindOf(host);
    const last = runs.at(-1);
    if (last?.kind === kind) last.hosts.push(host);
    else runs.push({ kind, hosts: [host] });
  }
  return runs.map((run) => run.hosts);
}
