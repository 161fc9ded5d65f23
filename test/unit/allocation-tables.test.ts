/** Slots that hosts report, lists in other tools' grammars, and the hosts of a Slurm job. */
import { describe, expect, test } from 'vitest';
import { withDetectedSlots } from '../../launcher/allocation/detected.ts';
import { slurmHosts } from '../../launcher/allocation/managed/slurm.ts';
import { printHosts } from '../../launcher/allocation/print/grammars.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { failureFrom } from './failure-from.ts';

/** `place+length message; remedy` */
function refused(run: () => unknown): string {
  const failure = failureFrom(run);
  if (failure.type !== 'hostfile') throw new Error(`a failure of type ${failure.type}`);
  const { message, position, remedy } = failure;
  return `${position === null ? '' : `${position.source}:${position.line}:${position.column}+${position.length} `}${message}; ${remedy}`;
}

test.each<[object, { cores: number; gpus: number }, number, string]>([
  [{}, { cores: 4, gpus: 0 }, 4, 'a has 4 cores and no GPU'],
  [{}, { cores: 4, gpus: 1 }, 1, 'a has 1 GPUs'],
  [{ slotsWithoutGpus: 3 }, { cores: 4, gpus: 0 }, 3, 'a has 3 tasks and no GPU'],
  [{ slotsWithoutGpus: 3 }, { cores: 4, gpus: 2 }, 2, 'a has 2 GPUs'],
  [{ maxSlots: 2 }, { cores: 4, gpus: 0 }, 2, 'a has 4 cores and no GPU'],
])('a host with %j and %j has %i slots', (properties, facts, slots, text) => {
  const { hosts } = withDetectedSlots(
    { hosts: [hostNamed('a', { slots: null, ...properties })] },
    new Map([['a', facts]]),
  );
  expect(hosts[0]).toMatchObject({ slots, origin: { text } });
});

describe('a list in other grammars', () => {
  const hosts = [
    hostNamed('a', { user: 'u', port: 22, maxSlots: 4 }),
    hostNamed('b', { slots: null, devices: [0] }),
    hostNamed('fe80::1', { slots: 3 }),
  ];
  const numbered = Array.from({ length: 10 }, (_, index) => hostNamed(`${'abcdefghij'[index]}`, { port: 1 }));

  test.each<['openmpi' | 'mpich' | 'deepspeed' | 'horovod' | 'slurm' | 'pdsh', string, string[]]>([
    [
      'openmpi',
      'u@a slots=2 max_slots=4 port=22\nb\n[fe80::1] slots=3\n',
      ['openmpi does not say which slots (give --include along): b'],
    ],
    [
      'mpich',
      'u@a:2\nb\n[fe80::1]:3\n',
      [
        'mpich has no ports: a',
        'mpich has no max_slots: a',
        'mpich does not say which slots (give --include along): b',
      ],
    ],
    [
      'deepspeed',
      'a slots=2\nb\n',
      [
        'deepspeed has no users: a',
        'deepspeed has no ports: a',
        'deepspeed has no max_slots: a',
        'deepspeed does not say which slots (give --include along): b',
        'deepspeed has no IPv6 addresses: fe80::1',
        'needs b',
      ],
    ],
    [
      'horovod',
      'a:2,b\n',
      [
        'horovod has no users: a',
        'horovod has no ports: a',
        'horovod has no max_slots: a',
        'horovod does not say which slots (give --include along): b',
        'horovod has no IPv6 addresses: fe80::1',
        'needs b',
      ],
    ],
    [
      'slurm',
      'a TASKS_PER_NODE=2\nb\n',
      [
        'slurm has no users: a',
        'slurm has no ports: a',
        'slurm has no max_slots: a',
        'slurm does not say which slots (give --include along): b',
        'slurm has no IPv6 addresses: fe80::1',
      ],
    ],
    [
      'pdsh',
      'u@a,b\n',
      [
        'pdsh has no ports: a',
        'pdsh has no numbers of slots: a, fe80::1',
        'pdsh has no max_slots: a',
        'pdsh does not say which slots (give --include along): b',
        'pdsh has no IPv6 addresses: fe80::1',
      ],
    ],
  ])('%s has its text, and says what is lost', (name, text, lost) => {
    expect(printHosts(hosts, name)).toEqual({
      text,
      lost: lost.map((words) =>
        words === 'needs b' ? `${name} needs a number of slots: b (--slots N gives one)` : `not written, ${words}`,
      ),
    });
  });

  test('a sentence names at most eight hosts that lose something', () => {
    expect(printHosts(numbered, 'mpich').lost).toEqual([
      'not written, mpich has no ports: a, b, c, d, e, f, g, h and 2 more',
    ]);
    expect(printHosts(numbered.slice(0, 8), 'mpich').lost).toEqual([
      'not written, mpich has no ports: a, b, c, d, e, f, g, h',
    ]);
    expect(printHosts(numbered.slice(0, 1), 'json').lost).toEqual([]);
  });
});

const found = (environment: Readonly<Record<string, string>>) => {
  const { entries, why, withoutGpus } = slurmHosts({
    name: 'slurm',
    environment: { SLURM_JOB_NODELIST: 'n[1-2]', ...environment },
    details: null,
  });
  return [
    entries.map(({ name, slots }) => `${name}:${slots ?? '?'}`).join(),
    why,
    withoutGpus && [...withoutGpus.values()].join(),
  ];
};

describe("a Slurm job's hosts", () => {
  test.each<[Readonly<Record<string, string>>, unknown[]]>([
    [{}, ['n1:?,n2:?', 'as many as the host has GPUs, or tasks if none', '1,1']],
    [{ SLURM_TASKS_PER_NODE: '2,3' }, ['n1:?,n2:?', 'as many as the host has GPUs, or tasks if none', '2,3']],
    [
      { SLURM_NTASKS: '5', SLURM_TASKS_PER_NODE: '2,3' },
      ['n1:2,n2:3', 'tasks of the Slurm job (SLURM_TASKS_PER_NODE)', undefined],
    ],
    [{ SLURM_NTASKS: '2' }, ['n1:1,n2:1', 'tasks of the Slurm job (SLURM_TASKS_PER_NODE)', undefined]],
    [{ SLURM_GPUS_PER_NODE: 'h200:4' }, ['n1:4,n2:4', 'GPUs of the Slurm job (SLURM_GPUS_PER_NODE)', undefined]],
    [{ SLURM_GPUS_PER_NODE: 'a100:2,h100:1' }, ['n1:3,n2:3', 'GPUs of the Slurm job (SLURM_GPUS_PER_NODE)', undefined]],
  ])('%j gives %j', (environment, expected) => {
    expect(found(environment)).toEqual(expected);
  });

  test.each([
    [{ SLURM_GPUS_PER_NODE: 'h200:x' }, 'SLURM_GPUS_PER_NODE:1:6+1 '],
    [{ SLURM_GPUS_PER_NODE: '0' }, 'SLURM_GPUS_PER_NODE:1:1+1 '],
    [{ SLURM_TASKS_PER_NODE: '1,2,3' }, 'SLURM_TASKS_PER_NODE:1:1+5 '],
    [{ SLURM_JOB_NODELIST: 'n[1' }, 'SLURM_JOB_NODELIST:1:'],
  ])('%j is refused at its place', (environment, message) => {
    expect(refused(() => found(environment)).slice(0, message.length)).toBe(message);
  });
});
