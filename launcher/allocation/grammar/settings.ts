/** What may follow a host on its line: `slots=N max_slots=N port=N`, and Slurm's `TASKS_PER_NODE=2(x3),1`. */
import { nearest } from '../../text/nearest.ts';
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import { checkUser } from './host-name.ts';
import { parsePort, parseSlots } from './number.ts';
import { parseTasksPerNode, type TasksPerNode } from './tasks-per-node.ts';
import type { Token } from './tokenize.ts';

export interface LineSettings {
  slots: number | null;
  maxSlots: number | null;
  port: number | null;
  user: string | null;
  /** One number of slots per host of the line. */
  tasks: TasksPerNode | null;
}

type Reader = (settings: LineSettings, value: Token, line: SourceLine) => void;

const readSlots: Reader = (settings, value, line) => {
  settings.slots = parseSlots(value, 'the number of slots', line);
};
const readMaxSlots: Reader = (settings, value, line) => {
  settings.maxSlots = parseSlots(value, 'the greatest number of slots', line);
};
const readUser: Reader = (settings, value, line) => {
  checkUser(value, line);
  settings.user = value.text;
};
const readTasks: Reader = (settings, value, line) => {
  settings.tasks = { counts: parseTasksPerNode(value, line), token: value };
};

/** By name, with underscores; the other spellings are Open MPI's too. */
const readers: ReadonlyMap<string, { readonly means: string; readonly read: Reader }> = new Map([
  ['slots', { means: 'slots', read: readSlots }],
  ['count', { means: 'slots', read: readSlots }],
  ['cpu', { means: 'slots', read: readSlots }],
  ['max_slots', { means: 'max_slots', read: readMaxSlots }],
  ['slots_max', { means: 'max_slots', read: readMaxSlots }],
  ['user', { means: 'user', read: readUser }],
  ['username', { means: 'user', read: readUser }],
  ['user_name', { means: 'user', read: readUser }],
  [
    'port',
    {
      means: 'port',
      read: (settings, value, line) => {
        settings.port = parsePort(value, line);
      },
    },
  ],
  ['tasks_per_node', { means: 'slots', read: readTasks }],
  ['slurm_tasks_per_node', { means: 'slots', read: readTasks }],
]);

const knownKeys = 'after a host may follow slots=N, max_slots=N and port=N';

/** `tokens` are what follows the host `host`. Throws a FailureError (hostfile). */
export function parseSettings(tokens: readonly Token[], host: string, line: SourceLine): LineSettings {
  const settings: LineSettings = { slots: null, maxSlots: null, port: null, user: null, tasks: null };
  const seen = new Map<string, string>();
  for (let i = 0; i < tokens.length; i += 3) {
    const { key, value } = readPair(tokens, i, host, line);
    const known = readers.get(key.text.replaceAll('-', '_').toLowerCase());
    const position = positionIn(line, key.offset, key.text.length);
    if (known === undefined)
      throw hostfileError(`unknown setting "${key.text}"`, position, didYouMean(key.text, value.text));
    const earlier = seen.get(known.means);
    if (earlier !== undefined) {
      const again = earlier === key.text ? 'is stated twice for one host' : `says again what ${earlier} says`;
      throw hostfileError(`${key.text} ${again}`, position, 'keep one of them');
    }
    seen.set(known.means, key.text);
    known.read(settings, value, line);
    const { slots, maxSlots } = settings;
    if (slots !== null && maxSlots !== null && maxSlots < slots) {
      const message = `max_slots is ${maxSlots}, less than slots, which is ${slots}`;
      throw hostfileError(message, positionIn(line, value.offset, value.text.length), 'raise max_slots or lower slots');
    }
  }
  return settings;
}

const inNetwork = 'leave it out: -x NCCL_SOCKET_IFNAME=eth0 chooses the interface';
const inTopology = 'leave it out: ncclrun finds out what a host consists of';

/** Settings of other tools. */
const elsewhere: Readonly<Record<string, string>> = {
  ifhn: inNetwork,
  interface: inNetwork,
  binding: 'leave it out: --bind-to says which cores a rank may use',
  max_cores: 'write max_slots=',
  maxcores: 'write max_slots=',
  boards: inTopology,
  sockets_per_board: inTopology,
  cores_per_socket: inTopology,
  topology: inTopology,
  ...Object.fromEntries(
    ['gpus', 'gpu', 'ngpus', 'np', 'ppn', 'nproc', 'cpus', 'cores'].map((key) => [key, 'write slots=']),
  ),
};

function didYouMean(key: string, value: string): string {
  const name = key.toLowerCase().replaceAll('-', '_');
  const other = Object.hasOwn(elsewhere, name) ? elsewhere[name] : undefined;
  if (other !== undefined) return other.endsWith('=') ? `${other}${value}` : other;
  const guess = nearest(key.toLowerCase().slice(0, 40), ['slots', 'max_slots', 'port']);
  return guess === null ? knownKeys : `did you mean ${guess}=? ${knownKeys}`;
}

function readPair(
  tokens: readonly Token[],
  start: number,
  host: string,
  line: SourceLine,
): { readonly key: Token; readonly value: Token } {
  const key = tokens[start] ?? { text: '', offset: line.text.length };
  const equals = tokens[start + 1];
  if (equals?.text !== '=' || key.text === '=') {
    const message = `"${key.text}" is not a setting of a host`;
    throw hostfileError(message, positionIn(line, key.offset, key.text.length), remedy(host, tokens.slice(start)));
  }
  const value = tokens[start + 2];
  if (value === undefined || value.text === '=') {
    throw hostfileError(`${key.text} has no value`, positionIn(line, equals.offset, 1), `write ${key.text}=N`);
  }
  return { key, value };
}

/** What is likely to be meant by bare words after a host. */
function remedy(host: string, tokens: readonly Token[]): string {
  const [word = '', next = ''] = tokens.map(({ text }) => text);
  if (/^[0-9]+$/u.test(word)) return `write ${host} slots=${word}, or ${host}:${word}`;
  const asSlots = /^slots:?([0-9]+)$/u.exec(word);
  if (asSlots !== null) return `write slots=${asSlots[1]}`;
  const key = word.replace(/:$/u, '').toLowerCase();
  if (readers.has(key)) return `write ${key}=${/^[0-9]+$/u.test(next) ? next : 'N'}`;
  if (host === 'ssh') return 'leave "ssh" out: a line begins with the host';
  return `one host per line, or several with commas between them; ${knownKeys}`;
}
