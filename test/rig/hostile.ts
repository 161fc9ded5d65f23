/** Texts with which a stranger attacks a terminal, and every event and failure that can carry them. */
import type { Failure } from '../../launcher/model/failure.ts';
import type { JobEvent } from '../../launcher/model/event.ts';
import type { Hang, Verdict } from '../../launcher/model/hang.ts';

/** A title, a colour, a line of ours that is not, 8-bit CSI, the deletion, a reversed direction, other line ends. */
export const HOSTILE =
  'h\u001B]0;pwned\u0007\u001B[31m\u001B[2J\r\nncclrun: all fine\r\u007F\u009B2J\u0085\u202Egnp\u2066\u2028x\u2029\u0000';

const position = { source: HOSTILE, line: 3, column: 2, text: HOSTILE, length: 4 };
const gpu = { index: 3, address: HOSTILE };
const ofRank = { host: HOSTILE, rank: 2 };
const xid = { host: HOSTILE, code: 79, gpu: 3, address: HOSTILE, ranks: [2], pid: 4711, message: HOSTILE };
const xids = [{ ...xid, secondsBefore: 1 }];
const stderrTail = [HOSTILE, HOSTILE];
const evidence = [{ kind: 'sleeps-in', host: HOSTILE, subject: HOSTILE, value: HOSTILE, unit: null }];
const verdict: Verdict = {
  schemaVersion: 1,
  kind: 'late',
  confidence: 'suspected',
  seconds: 3,
  communicator: { id: HOSTILE, epoch: 0, size: 4 },
  operation: { number: 7, collective: HOSTILE, bytes: 4, count: 1, type: HOSTILE, operator: HOSTILE, root: null },
  blamed: [
    { ranks: HOSTILE, host: HOSTILE, gpu, pid: 3, where: 'outside', last: null, waitsFor: null, because: evidence },
  ],
  waiting: { ranks: HOSTILE, count: 3, longestSeconds: 3 },
  chain: [{ from: 0, to: 1, communicator: HOSTILE }],
  classes: [{ ranks: HOSTILE, count: 3, where: 'inside', communicator: HOSTILE, operation: null }],
  evidence,
  stacks: [
    {
      id: 1,
      ranks: HOSTILE,
      thread: HOSTILE,
      frames: [{ language: 'python', function: HOSTILE, file: HOSTILE, line: 3, module: HOSTILE }],
    },
  ],
  consequences: 1,
  remedy: HOSTILE,
  message: HOSTILE,
};
export const hostileHang: Hang = {
  communicator: HOSTILE,
  operation: 7,
  call: HOSTILE,
  late: [HOSTILE, HOSTILE],
  waits: [HOSTILE],
  waiting: HOSTILE,
  seconds: 3,
  verdict,
};

/** One of each: the compiler asks for one of a new type. */
const failures: { readonly [Type in Failure['type']]: Extract<Failure, { readonly type: Type }> } = {
  usage: { type: 'usage', message: HOSTILE, position, remedy: HOSTILE },
  hostfile: { type: 'hostfile', message: HOSTILE, position, remedy: HOSTILE },
  allocation: { type: 'allocation', message: HOSTILE, remedy: HOSTILE },
  unrepeatable: { type: 'unrepeatable', message: HOSTILE, remedy: HOSTILE },
  preflight: {
    type: 'preflight',
    hosts: [HOSTILE],
    findings: [{ check: HOSTILE, message: HOSTILE, remedy: HOSTILE }],
  },
  'host-unreachable': {
    type: 'host-unreachable',
    host: HOSTILE,
    phase: 'connect',
    cause: 'other',
    detail: `${HOSTILE}\n${HOSTILE}`,
    remedy: HOSTILE,
  },
  agent: { type: 'agent', host: HOSTILE, phase: 'hello', message: HOSTILE, remedy: HOSTILE },
  'gpus-busy': {
    type: 'gpus-busy',
    host: HOSTILE,
    gpus: [{ index: null, slot: null, uuid: HOSTILE, job: HOSTILE, pid: null, user: HOSTILE }],
  },
  'host-lost': {
    type: 'host-lost',
    host: HOSTILE,
    cause: 'link-closed',
    silentMs: null,
    detail: `${HOSTILE}\n${HOSTILE}`,
    xids,
  },
  spawn: { type: 'spawn', ...ofRank, program: HOSTILE, cause: 'not-executable', errno: HOSTILE, remedy: null },
  'rank-exit': { type: 'rank-exit', ...ofRank, pid: 4711, exitCode: 3, outOfMemory: true, stderrTail, xids, gpu },
  'rank-signal': {
    type: 'rank-signal',
    ...ofRank,
    pid: 4711,
    signal: 'SIGKILL',
    outOfMemory: false,
    stderrTail,
    xids,
    gpu,
  },
  'rank-missing': { type: 'rank-missing', ...ofRank, message: HOSTILE, stderrTail, xids },
  'mpi-abort': { type: 'mpi-abort', ...ofRank, exitCode: 3, stderrTail },
  timeout: { type: 'timeout', seconds: 3 },
  'spawn-timeout': { type: 'spawn-timeout', seconds: 3, late: [HOSTILE, HOSTILE] },
  'init-timeout': {
    type: 'init-timeout',
    seconds: 3,
    what: HOSTILE,
    missing: [HOSTILE, HOSTILE],
    stderr: { rank: 2, tail: [HOSTILE] },
  },
  hang: { type: 'hang', ...hostileHang, xids },
  interrupt: { type: 'interrupt', signal: 'SIGINT' },
  output: { type: 'output', message: HOSTILE },
  system: { type: 'system', message: HOSTILE, remedy: HOSTILE },
  internal: { type: 'internal', message: HOSTILE },
};

export const hostileFailures: readonly Failure[] = Object.values(failures);

const time = 1;
const failure = failures.agent;

/** One of each: the compiler asks for one of a new type. */
const events: { readonly [Type in JobEvent['type']]: Extract<JobEvent, { type: Type }> } = {
  'job-started': {
    time,
    type: 'job-started',
    jobId: HOSTILE,
    ranks: 4,
    hosts: [HOSTILE, HOSTILE],
    programs: [[HOSTILE, HOSTILE]],
  },
  phase: { time, type: 'phase', phase: 'run' },
  'host-connecting': { time, type: 'host-connecting', host: HOSTILE },
  'host-remote-shell': { time, type: 'host-remote-shell', host: HOSTILE, message: HOSTILE },
  'host-step': { time, type: 'host-step', host: HOSTILE, step: HOSTILE },
  'host-staging': { time, type: 'host-staging', host: HOSTILE, bytes: 3e6 },
  'host-up': { time, type: 'host-up', host: HOSTILE, cores: 4, gpus: 1, pid: 9 },
  'host-ended': { time, type: 'host-ended', host: HOSTILE },
  binding: { time, type: 'binding', ...ofRank, bound: true, cpus: [0, 1], numa: 0, gpu: 1 },
  'rank-started': { time, type: 'rank-started', ...ofRank, pid: 4711 },
  'rank-exited': { time, type: 'rank-exited', ...ofRank, exitCode: null, signal: 'SIGKILL' },
  waiting: { time, type: 'waiting', what: HOSTILE, missing: [HOSTILE, HOSTILE], seconds: 10 },
  hang: { time, type: 'hang', ...hostileHang },
  'hang-stacks': {
    time,
    type: 'hang-stacks',
    communicator: HOSTILE,
    operation: 7,
    blamed: verdict.blamed,
    stacks: verdict.stacks,
  },
  verdict: { time, type: 'verdict', verdict: hostileHang.verdict, replaces: false },
  xid: { time, type: 'xid', at: 1, ...xid },
  communicator: { time, type: 'communicator', ranks: 4, hosts: 2 },
  tuning: { time, type: 'tuning', host: HOSTILE, ranks: 4, file: HOSTILE, key: HOSTILE, measured: false },
  signal: { time, type: 'signal', signal: 'SIGUSR1', forwarded: true },
  failure: { time, type: 'failure', failure, primary: true },
  notice: { time, type: 'notice', message: HOSTILE },
  network: { time, type: 'network', message: HOSTILE },
  restart: { time, type: 'restart', attempt: 1, limit: 3, failure, hosts: [HOSTILE] },
  shrink: { time, type: 'shrink', failure, left: 3 },
  'job-ended': { time, type: 'job-ended', ok: false, reason: HOSTILE, exitCode: 125 },
};

/** Each failure as an event, too, both as the primary one and as another. */
export const hostileEvents: readonly JobEvent[] = [
  ...Object.values(events),
  ...hostileFailures.flatMap((one) => [true, false].map((primary) => ({ ...events.failure, failure: one, primary }))),
  ...hostileFailures.map((one) => ({ ...events.shrink, failure: one })),
];

/** Fields whose words are ours, whatever a host says: the messages are checked against lists. */
const ours = new Set(['type', 'phase', 'cause', 'signal', 'kind', 'confidence', 'where', 'language']);

/** Texts in `value` that no stranger has had a hand in, with the way to them: an event that is missing an attack. */
export function harmlessTexts(value: unknown, way = ''): string[] {
  if (typeof value === 'string') return value.includes(HOSTILE) ? [] : [`${way}: ${value}`];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, below]) =>
    ours.has(name) ? [] : harmlessTexts(below, `${way}/${name}`),
  );
}

/** Characters of `text` that a terminal would obey or that begin a line, but our own newlines and tabs. */
export function obeyed(text: string): string[] {
  return Array.from(text.matchAll(/(?![\t\n])[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu), ([character]) => {
    return `U+${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
  });
}
