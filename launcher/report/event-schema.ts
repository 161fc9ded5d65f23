/**
 * What a line of --events holds, by its type: the table of docs/events.md is made from this, and jobs' real events are checked against it.
 * The compiler compares it with JobEvent, so that neither has a type, a field or a kind of value that the other lacks.
 */
import type { JobEvent } from '../model/event.ts';
import type { Failure, Phase } from '../model/failure.ts';
import type { Blamed, HangStack, Verdict } from '../model/hang.ts';

interface Kinds {
  text: string;
  number: number;
  'number or null': number | null;
  boolean: boolean;
  texts: readonly string[];
  numbers: readonly number[];
  'lists of texts': readonly (readonly string[])[];
  phase: Phase;
  signal: NodeJS.Signals;
  'signal or null': NodeJS.Signals | null;
  failure: Failure;
  verdict: Verdict;
  stacks: readonly HangStack[];
  blamed: readonly Blamed[];
}
export type FieldKind = keyof Kinds;

/** The one kind whose values are exactly `Value`. */
type KindOf<Value> = {
  [Kind in FieldKind]: [Value, Kinds[Kind]] extends [Kinds[Kind], Value] ? Kind : never;
}[FieldKind];

type SchemaOf<Event> = {
  readonly when: string;
  readonly fields: { readonly [Field in Exclude<keyof Event, 'type' | 'time'>]: KindOf<Event[Field]> };
};

export const eventSchema: { readonly [Type in JobEvent['type']]: SchemaOf<Extract<JobEvent, { type: Type }>> } = {
  'job-started': {
    when: 'it is known which rank runs where; `programs`: each with its arguments',
    fields: { jobId: 'text', ranks: 'number', hosts: 'texts', programs: 'lists of texts' },
  },
  phase: { when: 'a phase begins', fields: { phase: 'phase' } },
  'host-connecting': { when: 'a host is to be reached', fields: { host: 'text' } },
  'host-remote-shell': {
    when: 'it is reached by another remote shell than asked for, and why',
    fields: { host: 'text', message: 'text' },
  },
  'host-step': { when: 'how far the connection to it is, for people', fields: { host: 'text', step: 'text' } },
  'host-staging': { when: 'it lacks ncclrun and gets a copy', fields: { host: 'text', bytes: 'number' } },
  'host-up': {
    when: 'it has answered; `pid` is its agent',
    fields: { host: 'text', cores: 'number', gpus: 'number', pid: 'number' },
  },
  'host-ended': { when: 'nothing of the job is left there', fields: { host: 'text' } },
  binding: {
    when: '`--report-bindings`; null: none',
    fields: {
      rank: 'number',
      host: 'text',
      bound: 'boolean',
      cpus: 'numbers',
      numa: 'number or null',
      gpu: 'number or null',
    },
  },
  'rank-started': { when: 'the program runs', fields: { rank: 'number', host: 'text', pid: 'number' } },
  'rank-exited': {
    when: 'it has ended, with a status or by a signal',
    fields: { rank: 'number', host: 'text', exitCode: 'number or null', signal: 'signal or null' },
  },
  xid: {
    when: 'a GPU that ranks have reported an error to its driver (NVIDIA’s Xid `code`), `at` that time; `pid`: the process that the driver names',
    fields: {
      host: 'text',
      code: 'number',
      gpu: 'number',
      address: 'text',
      ranks: 'numbers',
      pid: 'number or null',
      message: 'text',
      at: 'number',
    },
  },
  communicator: { when: 'the launcher has wired one up', fields: { ranks: 'number', hosts: 'number' } },
  tuning: {
    when: 'a host, or the launcher for several of them, has planned one by a table of measured times; `measured` false: for the making of the table, `file`; `key`: what it holds for, as JSON',
    fields: { host: 'text', ranks: 'number', file: 'text', key: 'text', measured: 'boolean' },
  },
  waiting: {
    when: 'something takes long; `missing`: hosts or ranks by name',
    fields: { what: 'text', missing: 'texts', seconds: 'number' },
  },
  hang: {
    when: 'ranks make no progress in an operation (`--hang-after`); `late`: who keeps them waiting; `waits`: who waits for whom, and by which NICs; `waiting`: ranks of the job; `verdict`: [all of it](failures.md#verdicts-about-hangs)',
    fields: {
      communicator: 'text',
      operation: 'number',
      call: 'text',
      late: 'texts',
      waits: 'texts',
      waiting: 'text',
      seconds: 'number',
      verdict: 'verdict',
    },
  },
  'hang-stacks': {
    when: 'stacks that were read too late for a `hang`, whose communicator and operation they name; `stacks` and `blamed` are [those of its verdict](failures.md#verdicts-about-hangs)',
    fields: { communicator: 'text', operation: 'number', blamed: 'blamed', stacks: 'stacks' },
  },
  verdict: {
    when: 'something was found out beside hangs: calls that differ, who failed first, who does not join, who is slow: [the verdict](failures.md#verdicts); `replaces`: it takes the place of a `suspected` one about the same communicator',
    fields: { verdict: 'verdict', replaces: 'boolean' },
  },
  signal: {
    when: 'ncclrun got one; `forwarded`: the ranks get it too',
    fields: { signal: 'signal', forwarded: 'boolean' },
  },
  notice: { when: 'there is something you should know', fields: { message: 'text' } },
  network: { when: 'a communicator of several hosts is planned: its network and NICs', fields: { message: 'text' } },
  failure: {
    when: 'something failed; `primary`: it decides the job',
    fields: { failure: 'failure', primary: 'boolean' },
  },
  restart: {
    when: 'all ranks are started again, on `hosts`; `attempt` of at most `limit`',
    fields: { attempt: 'number', limit: 'number', failure: 'failure', hosts: 'texts' },
  },
  shrink: {
    when: 'a rank failed or a host was lost, and the `left` other ranks go on (`--on-failure shrink`); 0: all have ended, some of them well',
    fields: { failure: 'failure', left: 'number' },
  },
  'job-ended': {
    when: 'the last line; as in the result',
    fields: { ok: 'boolean', reason: 'text', exitCode: 'number' },
  },
};
