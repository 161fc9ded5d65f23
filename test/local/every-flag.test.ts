/** Every spelling of every option in a real job: what ranks and user find shows that it was heeded. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-every-flag-'));
afterAll(() => rmSync(directory, { recursive: true }));
const hostfile = join(directory, 'hosts');
writeFileSync(hostfile, 'localhost slots=4\n');
const shell = join(directory, 'shell');
writeFileSync(shell, '#!/bin/sh\necho "$1" >>"$0.called"\nshift\nexec sh -c "$*"\n', { mode: 0o755 });

const late = join(directory, 'late');
writeFileSync(late, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });

interface Job {
  /** null: the option takes none. */
  readonly value: string | null;
  readonly beside?: readonly string[];
  /** Of a shell; else it prints its rank. */
  readonly script?: string;
  /** Lines of stdout in any order. */
  readonly prints?: readonly string[];
  readonly status?: number;
  readonly stderr?: RegExp;
  /** More to see. */
  readonly also?: (outcome: Outcome) => void;
}

const ranks = (count: number): string[] => Array.from({ length: count }, (_, rank) => `${rank}`);
const four = ['--hostfile', hostfile];
const sleep = 'exec sleep 1000';

const jobs: Readonly<Record<string, Job | readonly Job[]>> = {
  np: { value: '2', prints: ranks(2) },
  npernode: { value: '3', beside: four, prints: ranks(3) },
  oversubscribe: { value: null, beside: ['-H', 'localhost:1', '-n', '3'], prints: ranks(3) },
  export: [
    { value: 'COLOUR=light blue', script: 'echo $COLOUR', beside: ['-n', '1'], prints: ['light blue'] },
    { value: 'EVERY_FLAG', script: 'echo $EVERY_FLAG', beside: ['-n', '1'], prints: ['given'] },
    { value: 'EVERY_*', script: 'echo $EVERY_FLAG', beside: ['-n', '1'], prints: ['given'] },
  ],
  wdir: { value: '/usr', beside: ['-n', '1'], script: 'pwd', prints: ['/usr'] },
  doctor: { value: null, beside: ['-n', '1'], prints: ['0'], stderr: /doctor looked at 1 host for / },
  'map-by': ['slot', 'node', 'numa', 'seq', 'ppr:3:node'].map((value) => ({
    value,
    beside: ['-n', value === 'seq' ? '1' : '3', ...four],
    prints: ranks(value === 'seq' ? 1 : 3),
  })),
  'rank-by': ['slot', 'node'].map((value) => ({ value, beside: [...four, '-n', '2'], prints: ranks(2) })),
  'bind-to': ['none', 'core', 'numa'].map((value) => ({
    value,
    beside: ['-n', '1', '--report-bindings'],
    prints: ['0'],
    stderr: value === 'none' ? /rank 0 on localhost: not bound/ : /rank 0 on localhost: bound to CPU/,
  })),
  'report-bindings': { value: null, beside: ['-n', '1'], stderr: /rank 0 on localhost: not bound, CPU/ },
  'isolate-gpus': { value: null, beside: ['-n', '1'], prints: ['0'] },
  'busy-gpus': ['refuse', 'report', 'ignore'].map((value) => ({ value, beside: ['-n', '1'], prints: ['0'] })),
  host: { value: 'localhost:3', prints: ranks(3) },
  hostfile: { value: hostfile, prints: ranks(4) },
  include: { value: 'localhost:0,2', beside: four, prints: ranks(2) },
  exclude: { value: 'localhost:0', beside: four, prints: ranks(3) },
  explain: {
    value: null,
    beside: ['--dry-run', ...four],
    also: ({ stdout }) => expect(stdout).toMatch(/slots: stated/),
  },
  rsh: {
    value: shell,
    beside: ['-H', 'elsewhere:2'],
    prints: ranks(2),
    also: () => expect(readFileSync(`${shell}.called`, 'utf8')).toMatch(/^(elsewhere\n)+$/),
  },
  radix: { value: '1', beside: ['--rsh', shell, '-H', 'elsewhere:1,faraway:1'], prints: ranks(2) },
  pmi: { value: 'none', beside: ['-n', '1'], script: 'echo ${PMI_RANK-unset}', prints: ['unset'] },
  'port-range': {
    value: '21000-21999',
    beside: ['-n', '1'],
    script: 'echo $NCCLRUN_PORT_RANGE; [ $MASTER_PORT -ge 21000 ] && [ $MASTER_PORT -le 21999 ] && echo within',
    prints: ['21000-21999', 'within'],
  },
  collnet: { value: null, beside: ['--simulate-hosts', '2', '-n', '2'], prints: ranks(2) },
  'collnet-hosts': { value: 'simulated-2', beside: ['--simulate-hosts', '2', '-n', '2'], prints: ranks(2) },
  stage: { value: 'never', beside: ['--rsh', shell, '-H', 'elsewhere:2'], prints: ranks(2) },
  'timestamp-output': {
    value: null,
    beside: ['-n', '1'],
    also: ({ stdout }) => expect(stdout).toMatch(/^[-\d]+ [\d:]+\.\d{3} 0\n$/),
  },
  output: [
    {
      value: `dir=${directory}/out`,
      beside: ['-n', '1'],
      also: () => expect(existsSync(join(directory, 'out'))).toBe(true),
    },
    {
      value: `file=${directory}/%n-%r-%h-%t`,
      beside: ['-n', '2'],
      also: ({ stdout }) => {
        expect(stdout.split('\n').toSorted()).toEqual(['', ...ranks(2)]);
        for (const rank of ranks(2)) expect(existsSync(join(directory, `2-${rank}-localhost-stdout`))).toBe(true);
      },
    },
  ],
  'output-filename': {
    value: `${directory}/filed`,
    beside: ['-n', '1'],
    also: () => expect(existsSync(join(directory, 'filed'))).toBe(true),
  },
  'merge-stderr-to-stdout': { value: null, beside: ['-n', '1'], script: 'echo $RANK >&2', prints: ['0'] },
  'output-ranks': { value: '1', beside: ['-n', '3'], prints: ['1'] },
  'tag-output': { value: null, beside: ['-n', '1'], prints: ['[0] 0'] },
  live: { value: 'never', beside: ['-n', '1'], prints: ['0'] },
  stdin: ['0', '1', '0-1', 'all', 'none'].map((value) => ({
    value,
    beside: ['-n', '2'],
    script: 'cat; echo $RANK',
    prints: ranks(2),
  })),
  report: {
    value: join(directory, 'report.json'),
    beside: ['-n', '2'],
    also: () => expect(JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'))).toMatchObject({ ok: true }),
  },
  events: {
    value: join(directory, 'events'),
    beside: ['-n', '1'],
    also: () => expect(readFileSync(join(directory, 'events'), 'utf8')).toMatch(/"type":"job-ended".*\n$/),
  },
  json: {
    value: null,
    beside: ['-n', '1'],
    also: ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ ok: true }),
  },
  color: [
    { value: 'always', script: 'exit 3', beside: ['-n', '1'], status: 3, stderr: /^\p{Cc}\[31mncclrun:/u },
    { value: 'never', script: 'exit 3', beside: ['-n', '1'], status: 3, stderr: /^ncclrun: rank 0/u },
  ],
  quiet: {
    value: null,
    beside: ['-n', '1', '--allow-run-as-root'],
    prints: ['0'],
    also: ({ stderr }) => expect(stderr).toBe(''),
  },
  verbose: { value: null, beside: ['-n', '1'], prints: ['0'], stderr: /rank 0/ },
  'dry-run': { value: null, beside: ['-n', '1'], also: ({ stdout }) => expect(stdout).toMatch(/^command {2}ncclrun/) },
  version: { value: null, also: ({ stdout }) => expect(stdout).toMatch(/^ncclrun \d/) },
  help: { value: null, also: ({ stdout }) => expect(stdout).toMatch(/ncclrun -n/) },
  timeout: { value: '0.3', beside: ['-n', '1'], script: sleep, status: 124, stderr: /did not end within 0\.3 s/ },
  'spawn-timeout': {
    value: '0.3',
    beside: ['--rsh', late, '-H', 'elsewhere:1'],
    status: 124,
    stderr: /late: elsewhere \(connect\)/,
  },
  'resource-manager': { value: 'none', beside: ['-n', '1'], prints: ['0'] },
  'hang-after': { value: '0.5', beside: ['-n', '1'], prints: ['0'] },
  'straggler-window': { value: '0.5', beside: ['-n', '1'], prints: ['0'] },
  'on-hang': { value: 'report', beside: ['-n', '1'], prints: ['0'] },
  grace: { value: '0.1', beside: ['-n', '2'], script: `[ $RANK = 0 ] && exit 3; trap "" TERM; ${sleep}`, status: 3 },
  'forward-signals': { value: 'USR1', beside: ['-n', '1'], prints: ['0'] },
  'on-failure': { value: 'abort', beside: ['-n', '2'], script: `[ $RANK = 0 ] && exit 3; ${sleep}`, status: 3 },
  'max-restarts': { value: '0', beside: ['-n', '1'], prints: ['0'] },
};

/** What takes more to show, and where it is shown. */
const elsewhere: Readonly<Record<string, string>> = {
  plan: 'local/plan.test.ts',
  engine: 'local/engine.test.ts',
  pmi: 'local/mpi.test.ts',
  'init-timeout': 'local/init-timeout.test.ts',
  fold: 'local/output.test.ts',
  record: 'local/recorder.test.ts',
  'simulate-hosts': 'local/simulate-hosts.test.ts',
};

async function run(words: readonly string[], { beside = [], script, prints, status = 0, stderr, also }: Job) {
  const plain = ['--tag-output=none', ...beside];
  const argv = [...plain, ...words, 'sh', '-c', script ?? 'echo $RANK'];
  const outcome = await Command.run(argv, { directory, environment: { EVERY_FLAG: 'given' } });
  expect(outcome.status, outcome.stderr).toBe(status);
  if (prints !== undefined) expect(outcome.stdout.split('\n').slice(0, -1).toSorted()).toEqual(prints);
  if (stderr !== undefined) expect(outcome.stderr).toMatch(stderr);
  also?.(outcome);
}

const options = runCommandLine.options.flatMap((option) => option.flags.map((flag) => [flag, option.name] as const));

describe('options in a job', () => {
  it.each(options.filter(([, name]) => name in jobs))('the option %s has its effect on a job', async (flag, name) => {
    for (const job of [jobs[name] ?? []].flat()) await run(job.value === null ? [flag] : [flag, job.value], job);
  });

  it('-genv sets a variable of the ranks', () =>
    run(['-genv', 'COLOUR', 'blue'], { value: null, beside: ['-n', '1'], script: 'echo $COLOUR', prints: ['blue'] }));

  it('MPIEXEC_TIMEOUT ends the job with 124', async () => {
    const environment = { MPIEXEC_TIMEOUT: '0.3' };
    expect(await Command.run(['-n', '1', 'sleep', '1000'], { environment })).toMatchObject({ status: 124 });
  });

  it('":" separates two programs of one job', () =>
    run(['-n', '1', 'sh', '-c', 'echo $RANK', ':', '-n', '2'], { value: null, prints: ranks(3) }));
});

describe('options that other tests cover', () => {
  it.each(options.filter(([, name]) => !(name in jobs)))('the test file of the option %s uses it', (flag, name) => {
    expect(elsewhere).toHaveProperty(name);
    expect(readFileSync(join(repository, 'test', elsewhere[name] ?? ''), 'utf8')).toMatch(new RegExp(`'${flag}['=]`));
  });
});
