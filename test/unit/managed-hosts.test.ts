import { describe, expect, it } from 'vitest';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { withDetectedSlots } from '../../launcher/allocation/detected.ts';
import { findManager, type Environment } from '../../launcher/allocation/managed/manager.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

const slurm = { SLURM_JOB_ID: '7', SLURM_JOB_NODELIST: 'n[08-10],gpu1' };

function hostsOf(environment: Environment, words: { hostList?: string; hostfile?: string } = {}) {
  const request = { hostfile: words.hostfile ?? null, hostList: words.hostList ?? null };
  return allocateHosts(
    { ...request, manager: findManager('auto', environment) },
    fakeMachine({ nodes: 'a\na\nb\n', mine: 'n09\nn10 slots=1\n' }),
  );
}
const slotsOf = (environment: Environment, words = {}) =>
  hostsOf(environment, words).hosts.map(({ name, slots }) => [name, slots] as const);
/** What is wrong, and where. */
const messageOf = (call: () => unknown): string => {
  const failure = failureFrom(call);
  const source = failure.type === 'hostfile' ? (failure.position?.source ?? '') : '';
  return `${source}: ${'message' in failure ? failure.message : ''}`;
};

describe("hosts of a resource manager's allocation", () => {
  it.each<[string, Environment, (readonly [string, number | null])[]]>([
    [
      'Slurm: tasks',
      { ...slurm, SLURM_NTASKS: '8', SLURM_TASKS_PER_NODE: '2(x3),1' },
      [
        ['n08', 2],
        ['n09', 2],
        ['n10', 2],
        ['gpu1', 1],
      ],
    ],
    [
      'Slurm: GPUs',
      { ...slurm, SLURM_GPUS_PER_NODE: 'h200:4', SLURM_TASKS_PER_NODE: '1(x4)' },
      [
        ['n08', 4],
        ['n09', 4],
        ['n10', 4],
        ['gpu1', 4],
      ],
    ],
    [
      'Slurm: GPUs of two kinds',
      { ...slurm, SLURM_JOB_NODELIST: 'n1', SLURM_GPUS_PER_NODE: 'a100:2,h100:1' },
      [['n1', 3]],
    ],
    [
      'Slurm: found out later',
      { ...slurm, SLURM_TASKS_PER_NODE: '5,1(x3)' },
      [
        ['n08', null],
        ['n09', null],
        ['n10', null],
        ['gpu1', null],
      ],
    ],
    [
      'PBS',
      { PBS_NODEFILE: 'nodes' },
      [
        ['a', 2],
        ['b', 1],
      ],
    ],
    [
      'LSF: pairs',
      { LSB_MCPU_HOSTS: 'a 4 b 2', LSB_HOSTS: 'a a' },
      [
        ['a', 4],
        ['b', 2],
      ],
    ],
    [
      'LSF: names',
      { LSB_HOSTS: 'a a b' },
      [
        ['a', 2],
        ['b', 1],
      ],
    ],
  ])('the hosts and slots follow the variables of %s', (_, environment, hosts) =>
    expect(slotsOf(environment)).toEqual(hosts),
  );

  it('a host without GPUs has as many slots as tasks', () => {
    const allocation = hostsOf({ ...slurm, SLURM_TASKS_PER_NODE: '5,1(x3)' });
    const facts = new Map([
      ['n08', { cores: 64, gpus: 0 }],
      ['n09', { cores: 64, gpus: 8 }],
    ]);
    expect(withDetectedSlots(allocation, facts).hosts.map(({ slots }) => slots)).toEqual([5, 8, null, null]);
  });

  it('Slurm starts the agents, on this host too', () => {
    const { hosts } = hostsOf({ ...slurm, SLURM_JOB_NODELIST: fakeMachine().hostName });
    expect(hosts).toMatchObject([{ local: false, manager: 'slurm' }]);
  });

  it('hostfile and -H select hosts of the allocation', () => {
    const tasks = { ...slurm, SLURM_NTASKS: '8', SLURM_TASKS_PER_NODE: '2(x4)' };
    expect(slotsOf(tasks, { hostList: 'gpu1,n08:1' })).toEqual([
      ['gpu1', 2],
      ['n08', 1],
    ]);
    expect(slotsOf(tasks, { hostfile: 'mine' })).toEqual([
      ['n09', 2],
      ['n10', 1],
    ]);
    expect(slotsOf(tasks, { hostfile: 'mine', hostList: 'n10' })).toEqual([['n10', 1]]);
    expect(messageOf(() => slotsOf(tasks, { hostList: 'n11' }))).toContain('n11 is not in the Slurm allocation');
    expect(messageOf(() => slotsOf(tasks, { hostfile: 'mine', hostList: 'n08' }))).toContain('n08 is not in mine');
  });

  it('a short name and the full name of a host are the same if one host alone has them', () => {
    const full = { ...slurm, SLURM_JOB_NODELIST: 'n1.a.org,n2.a.org,n2.b.org,n3' };
    expect(slotsOf(full, { hostList: 'n1' })).toEqual([['n1.a.org', null]]);
    expect(slotsOf(full, { hostList: 'N3.a.org' })).toEqual([['n3', null]]);
    expect(slotsOf(full, { hostList: 'n2.b.org' })).toEqual([['n2.b.org', null]]);
    expect(messageOf(() => slotsOf(full, { hostList: 'n2' }))).toContain('n2 is not in the Slurm allocation');
    const byAddress = { ...slurm, SLURM_JOB_NODELIST: '10.0.0.1,10' };
    expect(slotsOf(byAddress, { hostList: '10' })).toEqual([['10', null]]);
    expect(messageOf(() => slotsOf({ ...slurm, SLURM_JOB_NODELIST: '10.0.0.1' }, { hostList: '10.0' }))).toContain(
      '10.0 is not in',
    );
  });

  it('the hosts of a step on some hosts of the job are those of the step', () => {
    const step = { SLURM_STEP_NODELIST: 'n[08-09]', SLURM_NTASKS: '3', SLURM_TASKS_PER_NODE: '2,1' };
    expect(slotsOf({ ...slurm, ...step })).toEqual([
      ['n08', 2],
      ['n09', 1],
    ]);
    expect(slotsOf({ ...slurm, ...step, SLURM_TASKS_PER_NODE: '1(x4)' })).toHaveLength(4); // an older step's
  });

  it('a heterogeneous job is refused by name', () => {
    for (const sign of [{ SLURM_HET_SIZE: '2' }, { SLURM_PACK_SIZE: '2' }]) {
      expect(() => findManager('auto', { SLURM_JOB_ID: '9', ...sign })).toThrow(
        /heterogeneous Slurm job of 2 components/u,
      );
      expect(() => findManager('auto', { ...slurm, ...sign })).toThrow(/heterogeneous/u);
      expect(() => findManager('slurm', { ...slurm, ...sign })).toThrow(/heterogeneous/u);
      expect(findManager('none', { ...slurm, ...sign })).toBeNull();
      expect(findManager('pbs', { ...slurm, ...sign, PBS_NODEFILE: 'nodes' })?.name).toBe('pbs');
    }
    expect(findManager('auto', { ...slurm, SLURM_HET_SIZE: '1' })?.name).toBe('slurm');
  });

  it('Slurm is asked which GPUs each host has where that is not in the environment', () => {
    const details = 'Nodes=n[08-10] CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)\n Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)';
    const manager = findManager('auto', { ...slurm, SLURM_GPUS: '13' }, (job) => `JobId=${job}\n   ${details}\n`);
    const { hosts } = allocateHosts({ hostfile: null, hostList: null, manager }, fakeMachine());
    expect(hosts.map(({ slots, gpuOption }) => [slots, gpuOption])).toEqual([
      [4, '--gpus=4'],
      [4, '--gpus=4'],
      [4, '--gpus=4'],
      [1, '--gpus=1'],
    ]);
    expect(findManager('auto', { ...slurm, SLURM_GPUS_PER_NODE: '4' }, () => expect.unreachable())?.details).toBeNull();
  });

  it.each([
    [
      'task counts for another number of hosts',
      { ...slurm, SLURM_NTASKS: '3', SLURM_TASKS_PER_NODE: '1(x3)' },
      'tasks for 3 hosts, but the list names 4 hosts',
    ],
    ['an invalid list', { ...slurm, SLURM_JOB_NODELIST: 'n[1-' }, 'SLURM_JOB_NODELIST: '],
    ['a GPU count of zero', { ...slurm, SLURM_GPUS_PER_NODE: '0' }, 'the number of GPUs is 0'],
    ['a host name with shell characters', { ...slurm, SLURM_JOB_NODELIST: 'n1;reboot' }, 'SLURM_JOB_NODELIST: '],
    ['a missing file', { PBS_NODEFILE: 'gone' }, 'cannot read the hostfile gone'],
    ['a host without slots', { LSB_MCPU_HOSTS: 'a 4 b' }, 'b has no number of slots'],
  ])('the allocation rejects %s', (_, environment, says) =>
    expect(messageOf(() => slotsOf(environment))).toContain(says),
  );

  it('findManager ignores or requires a resource manager on request', () => {
    expect(findManager('none', slurm)).toBeNull();
    expect(findManager('auto', {})).toBeNull();
    expect(findManager('auto', { SLURM_JOB_ID: '7' })).toBeNull();
    expect(messageOf(() => findManager('slurm', {}))).toContain('not inside an allocation of slurm');
    expect(findManager('pbs', { ...slurm, PBS_NODEFILE: 'nodes' })?.name).toBe('pbs');
  });
});
