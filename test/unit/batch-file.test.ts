/** What files of ncclrun batch mean. */
import { describe, expect, it } from 'vitest';
import { fillIn } from '../../launcher/batch/file/fill-in.ts';
import { taskOf } from '../../launcher/batch/file/task.ts';
import type { Demand, Dependency, RetryPolicy } from '../../launcher/batch/model/spec.ts';
import { jobWith, readText } from '../rig/batch-files.ts';

const everyKey = `version: 1
name: sweep-lr
on_failure: finish
notify: [mail, -s, done]
defaults:
  time_limit: 4h
  working_dir: runs
  env: { NCCL_DEBUG: WARN, SCALE: 1.10 }
  env_from: [TOKEN]
jobs:
  - name: prep
    commands: [python3 prep.py, touch done]
    nodes: 1
    gpus_per_node: 0
    working-dir: /data
    env: { NCCL_DEBUG: INFO }
    hold: true
  - job-name: train
    command: [python3, train.py, --lr, "\${{ array.lr }}", 0.50]
    ntasks: 16
    nodes: 2
    ntasks-per-node: 8
    gpus-per-task: 1
    cpus_per_task: 12
    mem: 200G
    hosts: node[1-4],gpu7
    exclude: [node2]
    exclusive: true
    time: 1-12:00:00
    export: [SEED=7, HOME]
    priority: 80
    array: { lr: [0.1, 3e-2], seed: 1..2, exclude: [{ lr: 0.1, seed: 2 }], max-parallel: 2, max_fails: 5 }
    dependency: afterok:prep
    retry:
      on_events: [error, interruption]
      max_retries: 2
      max_interruptions: 4
      unless_exit: [2, 126]
      delay: 1m
      on_oom: retry
    requeue: true
    signal: USR1@120
    output: logs/%x/%a.%t.out
    options: [--on-hang, restart, --max-restarts, 1]
    slurm: [--partition=short]
`;

describe('a file of ncclrun batch', () => {
  it('every key has its meaning', () => {
    const nothingSaid = {
      nodes: null,
      ranksPerNode: null,
      cpusPerRank: 1,
      memoryBytes: 0,
      exclusive: false,
      hosts: null,
      exclude: [],
    };
    expect(readText(everyKey)).toEqual({
      name: 'sweep-lr',
      onFailure: 'finish',
      notify: ['mail', '-s', 'done'],
      jobs: [
        {
          name: 'prep',
          line: 11,
          command: ['sh', '-c', 'python3 prep.py && touch done'],
          demand: { ...nothingSaid, ranks: 1, nodes: 1, ranksPerNode: 1, takesSlots: false },
          environment: { NCCL_DEBUG: 'INFO', SCALE: '1.10' },
          passedEnvironment: ['TOKEN'],
          workingDirectory: '/data',
          timeLimitSeconds: 14_400,
          priority: 50,
          array: null,
          dependencies: [],
          retry: { errors: 0, interruptions: 10, unlessExit: [], delaySeconds: 30, onOutOfMemory: false },
          output: '%A/%x.%a.%r.out',
          signal: null,
          held: true,
          options: [],
          slurm: [],
        },
        {
          name: 'train',
          line: 18,
          command: ['python3', 'train.py', '--lr', '${{ array.lr }}', '0.50'],
          demand: {
            ranks: 16,
            nodes: 2,
            ranksPerNode: 8,
            takesSlots: true,
            cpusPerRank: 12,
            memoryBytes: 200 * 2 ** 30,
            exclusive: true,
            hosts: ['node1', 'node2', 'node3', 'node4', 'gpu7'],
            exclude: ['node2'],
            asksGpus: true,
          },
          environment: { NCCL_DEBUG: 'WARN', SCALE: '1.10', SEED: '7' },
          passedEnvironment: ['TOKEN', 'HOME'],
          workingDirectory: '/work/runs',
          timeLimitSeconds: 129_600,
          priority: 80,
          array: {
            tasks: [
              { index: 0, values: { lr: '0.1', seed: '1' } },
              { index: 2, values: { lr: '3e-2', seed: '1' } },
              { index: 3, values: { lr: '3e-2', seed: '2' } },
            ],
            maxParallel: 2,
            maxFails: 5,
          },
          dependencies: [{ job: 'prep', condition: 'ok', each: false }],
          retry: { errors: 2, interruptions: 4, unlessExit: [2, 126], delaySeconds: 60, onOutOfMemory: true },
          output: 'logs/%x/%a.%t.out',
          signal: { name: 'SIGUSR1', secondsBefore: 120 },
          held: false,
          options: ['--on-hang', 'restart', '--max-restarts', '1'],
          slurm: ['--partition=short'],
        },
      ],
    });
  });

  it('the same file as JSON means the same', () => {
    const json = '{ "jobs": [{ "name": "a", "command": ["x", "-1"], "nodes": 2, "array": { "lr": [0.10] } }] }';
    const yaml = 'jobs:\n- name: a\n  command: [x, -1]\n  nodes: 2\n  array: { lr: [0.10] }\n';
    expect(readText(json)).toEqual({
      ...readText(yaml),
      jobs: readText(yaml).jobs.map((job) => ({ ...job, line: 1 })),
    });
  });

  it('a file without a name has the name of its file', () => {
    expect(readText('jobs: [{ name: a, command: x }]').name).toBe('batch');
  });

  it('an alias stands for the value of its anchor', () => {
    const text =
      'jobs:\n  - { name: a, command: &c [x, y], env: &e { A: 1 } }\n  - { name: b, command: *c, env: *e }\n';
    expect(readText(text).jobs[1]).toMatchObject({ command: ['x', 'y'], environment: { A: '1' } });
  });

  it('a key without a value leaves a default out', () => {
    const text =
      'defaults: { time_limit: 1h, commands: [x], gpus: 4 }\njobs:\n  - { name: a, command: y, time_limit: , gpus_per_node: 0 }\n';
    expect(readText(text).jobs[0]).toMatchObject({
      command: ['sh', '-c', 'y'],
      timeLimitSeconds: null,
      demand: { ranks: 1, takesSlots: false },
    });
  });

  it('the options of a job are checked as they are typed', () => {
    const seen: (readonly string[])[] = [];
    readText('jobs: [{ name: a, command: x, options: [--on-hang, restart, 5] }]', (words) => void seen.push(words));
    expect(seen).toEqual([['--on-hang', 'restart', '5']]);
  });
});

describe('the demand of a job', () => {
  it.each<[string[], Partial<Demand>]>([
    [[], { ranks: 1, nodes: null, ranksPerNode: null, takesSlots: true }],
    [['ntasks: 16'], { ranks: 16, nodes: null, ranksPerNode: null }],
    [['nodes: 2'], { ranks: 2, nodes: 2, ranksPerNode: 1 }],
    [['nodes: 2', 'gpus_per_node: 8'], { ranks: 16, nodes: 2, ranksPerNode: 8, takesSlots: true, asksGpus: true }],
    [['nodes: 2', 'gpus_per_node: 0'], { ranks: 2, nodes: 2, ranksPerNode: 1, takesSlots: false }],
    [['ntasks: 16', 'ntasks_per_node: 4'], { ranks: 16, nodes: 4, ranksPerNode: 4 }],
    [['ntasks: 16', 'nodes: 3'], { ranks: 16, nodes: 3, ranksPerNode: null }],
    [['ntasks_per_node: 4'], { ranks: 4, nodes: 1, ranksPerNode: 4 }],
    [['gpus: 16'], { ranks: 16, nodes: null, ranksPerNode: null }],
    [['gpus: 16', 'gpus_per_node: 8'], { ranks: 16, nodes: 2, ranksPerNode: 8 }],
    [['gpus: 0'], { ranks: 1, nodes: null, takesSlots: false }],
    [['gpus_per_task: 0', 'ntasks: 4'], { ranks: 4, takesSlots: false }],
    [['gpus_per_node: H100:4'], { ranks: 4, nodes: 1, gpuModel: 'H100' }],
    [
      ['resources: { gpu: H100:8, memory: 200GB.., cpu: 20.. }'],
      { ranks: 8, nodes: 1, ranksPerNode: 8, cpusPerRank: 3, memoryBytes: 200 * 2 ** 30, gpuModel: 'H100' },
    ],
    [['resources: { gpu: H100, cpu: 16 }', 'nodes: 2'], { ranks: 2, nodes: 2, ranksPerNode: 1, cpusPerRank: 16 }],
    [['resources: { gpu: { name: A100, count: 2 } }'], { ranks: 2, ranksPerNode: 2, gpuModel: 'A100' }],
    [['resources: { gpu: 2, memory: 1G..4G }'], { ranks: 2, memoryBytes: 2 ** 30 }],
    [['mem: 1.5T'], { memoryBytes: 1.5 * 2 ** 40 }],
    [['mem: 512MiB'], { memoryBytes: 512 * 2 ** 20 }],
    [['nodelist: "a[01-02], b"', 'exclude: c'], { hosts: ['a01', 'a02', 'b'], exclude: ['c'] }],
  ])('the demand of %j is worked out', (lines, expected) => {
    expect(jobWith(...lines).demand).toMatchObject(expected);
  });
});

it.each<[string, number]>([
  ['90s', 90],
  ['15m', 900],
  ['12h', 43_200],
  ['2d', 172_800],
  ['1h30m', 5400],
  ['1.5h', 5400],
  ['12:00:00', 43_200],
  ['00:00:30', 30],
  ['2-00:00:00', 172_800],
  ['1-12', 129_600],
  ['1-12:30', 131_400],
])('the duration %s is %i seconds', (text, seconds) => {
  expect(jobWith(`max_duration: ${text}`).timeLimitSeconds).toBe(seconds);
});

it.each<[string, number[], number | null]>([
  ['0-3', [0, 1, 2, 3], null],
  ['0-15%4', Array.from({ length: 16 }, (_, index) => index), 4],
  ['0-30:10', [0, 10, 20, 30], null],
  ['1,3,7', [1, 3, 7], null],
  ['"5"', [5], null],
  ['5-5', [5], null],
  ['7,0-2,1', [0, 1, 2, 7], null],
  ['{ seed: 1..3, max_parallel: 2 }', [0, 1, 2], 2],
])('the array %s has its numbers', (text, indexes, maxParallel) => {
  const { array } = jobWith(`array: ${text}`);
  expect(array?.tasks.map(({ index }) => index)).toEqual(indexes);
  expect(array?.maxParallel).toBe(maxParallel);
});

it('the first word of an array varies slowest', () => {
  const { array } = jobWith('array: { lr: [0.1, 0.03], seed: 0..10:5, kind: plain }');
  expect(array?.tasks.map(({ values: { lr, seed, kind } }) => `${lr} ${seed} ${kind}`)).toEqual([
    '0.1 0 plain',
    '0.1 5 plain',
    '0.1 10 plain',
    '0.03 0 plain',
    '0.03 5 plain',
    '0.03 10 plain',
  ]);
});

const ok = { condition: 'ok', each: false } as const;
const any = { condition: 'any', each: false } as const;

it.each<[string, Dependency[]]>([
  ['b', [{ job: 'b', ...ok }]],
  [
    '[b, c]',
    [
      { job: 'b', ...ok },
      { job: 'c', ...ok },
    ],
  ],
  [
    'b,c',
    [
      { job: 'b', ...ok },
      { job: 'c', ...ok },
    ],
  ],
  [
    '{ b: any, c: start }',
    [
      { job: 'b', ...any },
      { job: 'c', condition: 'start', each: false },
    ],
  ],
  [
    '{ b: afternotok, c: each }',
    [
      { job: 'b', condition: 'notok', each: false },
      { job: 'c', condition: 'ok', each: true },
    ],
  ],
  [
    'afterok:b,afterany:c',
    [
      { job: 'b', ...ok },
      { job: 'c', ...any },
    ],
  ],
  [
    'afterany:b:c',
    [
      { job: 'b', ...any },
      { job: 'c', ...any },
    ],
  ],
  [
    '[after:b, aftercorr:c]',
    [
      { job: 'b', condition: 'start', each: false },
      { job: 'c', condition: 'ok', each: true },
    ],
  ],
])('a job that waits for %s has these dependencies', (text, expected) => {
  const others = '- { name: b, command: x }\n- { name: c, command: x, array: 0-3 }';
  const [job] = readText(`jobs:\n- name: a\n  command: x\n  array: 0-3\n  after: ${text}\n${others}\n`).jobs;
  expect(job?.dependencies).toEqual(expected);
});

it.each<[string[], Partial<RetryPolicy>]>([
  [['retry: { max_retries: 3 }'], { errors: 3, interruptions: 10 }],
  [['retry: { on_events: [error], max_retries: 3 }'], { errors: 3, interruptions: 0 }],
  [['retry: { on_events: [interruption] }'], { errors: 0, interruptions: 10 }],
  [['retry: { on_events: [] }'], { errors: 0, interruptions: 0 }],
  [['preemptible: false'], { errors: 0, interruptions: 0 }],
  [['retry: { delay: 0s, on-oom: stop }'], { delaySeconds: 0, onOutOfMemory: false }],
])('a job with %j runs again so often', (lines, expected) => {
  expect(jobWith(...lines).retry).toMatchObject(expected);
});

it.each<[string, string, number]>([
  ['USR1@120', 'SIGUSR1', 120],
  ['SIGTERM@5', 'SIGTERM', 5],
  ['B:usr2', 'SIGUSR2', 60],
  ['10@30', 'SIGUSR1', 30],
])('the signal %s comes ahead of the time limit', (text, name, secondsBefore) => {
  expect(jobWith('time: 1h', `signal: ${text}`).signal).toEqual({ name, secondsBefore });
});

it('variables may stand in a list or a text, with or without values', () => {
  expect(jobWith('env: [A=1=2, B]')).toMatchObject({ environment: { A: '1=2' }, passedEnvironment: ['B'] });
  expect(jobWith('export: "A=1, B"', 'env_from: C')).toMatchObject({
    environment: { A: '1' },
    passedEnvironment: ['C', 'B'],
  });
});

describe('a task', () => {
  it('its values are filled in, and stand in its environment', () => {
    const batch = readText(`name: night
jobs:
  - name: a
    command: [train, "--lr=\${{ array.lr }}", "\${{env.RUN}}", "$\${{ raw }}", "\${{ batch.name }}"]
    env: { RUN: "\${{ env.BASE }}-\${{ array.index }}", BASE: "\${{ job.name }}" }
    output: "\${{ array.share }}/%a.out"
    array: { lr: [0.1, 0.03], share: [50%] }
`);
    const [job] = batch.jobs;
    const task = job?.array?.tasks[1];
    if (job === undefined || task === undefined) throw new Error('the file has no task');
    expect(taskOf(batch, job, task)).toEqual({
      command: ['train', '--lr=0.03', 'a-1', '${{ raw }}', 'night'],
      environment: {
        RUN: 'a-1',
        BASE: 'a',
        NCCLRUN_ARRAY_TASK_ID: '1',
        NCCLRUN_ARRAY_TASK_COUNT: '2',
        NCCLRUN_ARRAY_TASK_MIN: '0',
        NCCLRUN_ARRAY_TASK_MAX: '1',
        NCCLRUN_ARRAY_TASK_STEP: '1',
        SLURM_ARRAY_TASK_ID: '1',
        SLURM_ARRAY_TASK_COUNT: '2',
        SLURM_ARRAY_TASK_MIN: '0',
        SLURM_ARRAY_TASK_MAX: '1',
        SLURM_ARRAY_TASK_STEP: '1',
        NCCLRUN_ARRAY_LR: '0.03',
        NCCLRUN_ARRAY_SHARE: '50%',
      },
      output: '50%%/%a.out',
    });
  });

  it.each([
    ['0-30:10', '10'],
    ['1,3,7', '1'],
    ['"4"', '1'],
  ])('the step of the array %s is %s', (text, step) => {
    const job = jobWith(`array: ${text}`);
    const [task = null] = job.array?.tasks ?? [];
    expect(taskOf({ name: 'b' }, job, task).environment['SLURM_ARRAY_TASK_STEP']).toBe(step);
  });

  it('a job without an array has no variables of one', () => {
    const job = jobWith('env: { A: 1 }');
    expect(taskOf({ name: 'b' }, job, null)).toEqual({
      command: ['sh', '-c', 'x'],
      environment: { A: '1' },
      output: '%A/%x.%a.%r.out',
    });
  });

  it('a text keeps what has no value', () => {
    const values = new Map([['job.name', '$& ${{ job.name }}']]);
    expect(fillIn('${{ job.name }} ${{ other.x }} $${{ job.name }} ${{', values)).toBe(
      '$& ${{ job.name }} ${{ other.x }} ${{ job.name }} ${{',
    );
  });
});
