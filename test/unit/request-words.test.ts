/** Requests as words: signals, collectives, requests that contradict themselves, and who asks for JSON. */
import { describe, expect, it } from 'vitest';
import { collectivesOf, collectiveWords } from '../../launcher/cli/collectives.ts';
import { forwardSignals } from '../../launcher/cli/forward-signals.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { jsonAsked } from '../../launcher/cli/json-asked.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { refuseTask } from '../../launcher/cli/refuse-task.ts';
import { failureFrom } from './failure-from.ts';

const refused = (run: () => unknown): string => {
  const failure = failureFrom(run);
  return failure.type === 'usage' ? `${failure.message}; ${failure.remedy}` : failure.type;
};

describe('--forward-signals', () => {
  const listed = 'these can: USR1, USR2,';

  it.each<[string[], string[]]>([
    [['none'], []],
    [['NONE'], []],
    [
      ['usr1', 'SIGUSR2'],
      ['SIGUSR1', 'SIGUSR2'],
    ],
    [['10, sigusr1'], ['SIGUSR1']],
  ])('%j forwards %j', (lists, signals) => {
    expect(forwardSignals(lists, '-s')).toEqual(signals);
  });

  it.each([
    ['USR3', `-s: there is no signal "USR3"; did you mean USR1? ${listed}`],
    ['non', `-s: there is no signal "non"; did you mean none? ${listed}`],
    ['none,USR1', '-s: there is no signal "none"; did you mean none? '],
    ['99', `-s: there is no signal "99"; ${listed}`],
    ['INT', `-s: SIGINT cannot be passed on: it ends the job, and the ranks get it anyway; ${listed}`],
    ['TERM', '-s: SIGTERM cannot be passed on: it ends the job, '],
    ['1', '-s: SIGHUP cannot be passed on: it ends the job, '],
    ['9', '-s: SIGKILL cannot be passed on: no program can see it coming; '],
    ['STOP', '-s: SIGSTOP cannot be passed on: no program can see it coming; '],
    ['CHLD', '-s: SIGCHLD cannot be passed on: it speaks of ncclrun’s own process; '],
  ])('%s is refused', (list, message) => {
    expect(refused(() => forwardSignals([list], '-s'))).toContain(message);
  });
});

describe('collectives', () => {
  it('words may be lists, or all', () => {
    expect(collectivesOf(['all_reduce,broadcast', 'sendrecv'])).toEqual(['allReduce', 'broadcast', 'sendRecv']);
    expect(collectiveWords(['all'])).toHaveLength(9);
  });

  it.each([
    ['all_reduc', 'no collective is called all_reduc; did you mean all_reduce?'],
    ['xyz', 'no collective is called xyz; there are all_reduce, all_gather, '],
  ])('%s is refused', (word, message) => {
    expect(refused(() => collectiveWords([word]))).toContain(message);
  });
});

const request = (words: string) => {
  const {
    settings,
    words: program,
    further,
  } = readCommandLine<JobOptionName>(words.split(' '), runCommandLine, { XDG_CONFIG_HOME: '/none' });
  return jobRequest(settings, program, further);
};

describe('requests that contradict themselves', () => {
  it.each([
    [
      '--simulate-hosts 2 p',
      '--simulate-hosts 2 deals ranks to hosts, and there is no -n that says how many; add -n RANKS',
    ],
    ['--simulate-hosts 3 -n 2 p', '--simulate-hosts 3, but there are 2 ranks; every simulated host needs one'],
    ['--simulate-hosts 3 -n 1 p : -n 1 q', '--simulate-hosts 3, but there are 2 ranks; every simulated host needs one'],
    ['--simulate-hosts 1 -H a -n 1 p', '-H and --simulate-hosts both say which hosts there are; leave one of them out'],
    ['-N 2 --map-by seq p', '-N 2 and --map-by seq both say how many ranks a host gets; leave one of them out'],
    [
      '-N 2 --map-by ppr:3:node p',
      '-N 2 and --map-by ppr:3:node both say how many ranks a host gets; leave one of them out',
    ],
    [
      '-N 2 --map-by ppr:2:numa p',
      '-N 2 and --map-by ppr:2:numa both say how many ranks a host gets; leave one of them out',
    ],
    [
      '--rank-by numa p',
      '--rank-by numa, but ranks are not dealt to NUMA nodes; add --map-by numa, or --map-by ppr:N:numa',
    ],
    ['-x A*=1 p', '-x is "A*=1"; VAR, VAR=value or \'PREFIX*\' is wanted'],
    ['-x =1 p', '-x is "=1"; VAR, VAR=value or \'PREFIX*\' is wanted'],
    ['--fold --tag-output=none p', '--fold without tags would not say who wrote a line; leave --tag-output=none out'],
    ['--output-ranks 3-1 p', '--output-ranks is "3-1"; ranks such as 0,3-5 are wanted'],
  ])('"%s" is refused', (words, message) => {
    expect(refused(() => request(words))).toBe(message);
  });

  it('what does not contradict itself is taken', () => {
    expect([
      request('--simulate-hosts 2 -n 2 p').simulated,
      request('--simulate-hosts 2 -n 5 p').simulated,
      request('p').simulated,
    ]).toEqual([{ hosts: 2, slots: 1 }, { hosts: 2, slots: 3 }, null]);
    expect(request('-N 2 --map-by ppr:2:node p').mapBy).toEqual({ by: 'ppr', count: 2, object: 'node' });
    expect([
      request('--rank-by numa --map-by ppr:2:numa p').rankBy,
      request('--rank-by numa --map-by gpu p').rankBy,
    ]).toEqual(['numa', 'numa']);
    expect(['-x A=*', '-x A*', '-x A=1=2'].map((words) => request(`${words} p`).programs[0]?.exports)).toEqual([
      ['A=*'],
      ['A*'],
      ['A=1=2'],
    ]);
    expect([
      request('--output timestamp p').timestampOutput,
      request('--timestamp-output p').timestampOutput,
      request('p').timestampOutput,
    ]).toEqual([true, true, false]);
    expect([
      request('--output merge p').mergeStderr,
      request('--merge-stderr-to-stdout p').mergeStderr,
      request('p').mergeStderr,
    ]).toEqual([true, true, false]);
    expect([request('--output-ranks 0,3-5 p').outputRanks, request('p').outputRanks]).toEqual([
      [
        { first: 0, last: 0 },
        { first: 3, last: 5 },
      ],
      null,
    ]);
  });
});

describe('a task of srun', () => {
  const task = { SLURM_PROCID: '2', SLURM_JOB_ID: '7', SLURM_STEP_NUM_TASKS: '4' };

  it('no task of several starts a job', () => {
    expect(refused(() => refuseTask({ ...task, SLURM_PROCID: '0' }))).toMatch(/^this is task 0 of 4 that srun has/u);
    expect(refused(() => refuseTask(task))).toMatch(
      /^this is task 2 of 4 that srun has started, .*; leave srun out: /u,
    );
    expect(refused(() => refuseTask({ ...task, SLURM_STEP_NUM_TASKS: '' }))).toMatch(
      /^this is task 2 of several that/u,
    );
  });

  it.each([
    { SLURM_PROCID: '0', SLURM_STEP_NUM_TASKS: '1' },
    { SLURM_PROCID: '0', SLURM_STEP_NUM_TASKS: '' },
    { SLURM_PROCID: '' },
    { SLURM_PROCID: '02' },
    { SLURM_JOB_ID: '' },
    { NCCLRUN_JOB_ID: 'j' },
  ])('a process with %j may start jobs', (change) => {
    expect(() => refuseTask({ ...task, ...change })).not.toThrow();
  });
});

it.each([
  ['-genv A 1 --json prog', true],
  ['-genv A 1 prog --json', false],
  ['-genv A=1 --json prog', true],
  ['-genv A=1 prog --json', false],
  ['--unknown -n 2 --json prog', true],
  ['--unknown x y --json', false],
  ['-n -5 --json prog', true],
  ['-n', false],
  ['-x A=--json prog', false],
  ['--json=0=1 prog', false],
])('whether "%s" asks for JSON: %s', (words, asked) => {
  expect(jsonAsked(words.split(' '), runCommandLine, {})).toBe(asked);
});

const aggregators = (text: string) => {
  const argv = ['-n', '2', ...text.split(' ').filter(Boolean), 'p'];
  const { settings, words, further } = readCommandLine<JobOptionName>(argv, runCommandLine, {
    XDG_CONFIG_HOME: '/nonexistent',
  });
  return jobRequest(settings, words, further).aggregators;
};

describe('aggregators', () => {
  it.each([
    ['', null],
    ['--collnet', { count: null, hostList: null }],
    ['--collnet=2', { count: 2, hostList: null }],
    ['--collnet=0', null],
    ['--collnet-hosts a,b', { count: null, hostList: 'a,b' }],
    ['--collnet=1 --collnet-hosts a,b', { count: 1, hostList: 'a,b' }],
    ['--collnet=0 --collnet-hosts a,b', null],
  ])('"%s" wants %j', (text, expected) => {
    expect(aggregators(text)).toEqual(expected);
  });
});
