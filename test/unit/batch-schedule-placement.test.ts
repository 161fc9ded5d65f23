/** Where the tasks of a batch are placed. */
import { describe, expect, it } from 'vitest';
import type { Demand } from '../../launcher/batch/model/spec.ts';
import { pickSlots } from '../../launcher/batch/schedule/pick-slots.ts';
import { Resources } from '../../launcher/batch/schedule/resources.ts';
import { hostsOf, placeText, queueOf, taskOf } from '../rig/batch/workload.ts';

describe('placement', () => {
  it.each<[string, readonly number[], Partial<Demand>, string]>([
    ['one host is enough', [2, 4, 4], { ranks: 4 }, 'node2:0123'],
    ['the fewest hosts are taken', [2, 2, 8], { ranks: 9 }, 'node1:01 node3:0123456'],
    ['hosts with equal room go by their order', [4, 4, 4], { ranks: 8 }, 'node1:0123 node2:0123'],
    ['ranks spread evenly over a number of hosts', [8, 8], { ranks: 6, nodes: 2 }, 'node1:012 node2:012'],
    ['a small host takes what it can', [2, 8, 8], { ranks: 9, nodes: 3 }, 'node1:01 node2:0123 node3:012'],
    ['each host gets its number of ranks', [3, 8, 4], { ranks: 8, ranksPerNode: 4 }, 'node2:0123 node3:0123'],
    ['named hosts alone are used', [8, 8, 8], { ranks: 2, hosts: ['node3', 'node2'] }, 'node2:01'],
    ['excluded hosts are not used', [8, 8, 8], { ranks: 2, exclude: ['node1'] }, 'node2:01'],
    ['ranks without slots take none', [2, 2], { ranks: 2, takesSlots: false }, 'node1:2 ranks'],
    ['a gang that does not fit whole waits', [4, 3], { ranks: 8 }, 'waits'],
  ])('%s', (_title, slots, demand, expected) => {
    const queue = queueOf(hostsOf(slots), [taskOf('one', demand)]);
    expect(placeText(queue.next(0)[0]?.placement)).toBe(expected);
  });

  it('processors and memory bound the ranks of a host', () => {
    const hosts = hostsOf([8, 8], { cpus: 16, memoryBytes: 100 });
    const demand = { ranks: 4, cpusPerRank: 6, memoryBytes: 60 };
    const queue = queueOf(hosts, [taskOf('one', demand), taskOf('two', demand), taskOf('free', { ranks: 4 })]);
    expect(queue.next(0).map(({ id, placement }) => `${id} ${placeText(placement)}`)).toEqual([
      'one node1:01 node2:01',
      'free node1:4567',
    ]);
  });

  it('an exclusive task has its hosts for itself', () => {
    const tasks = [taskOf('alone', { ranks: 2, exclusive: true }), taskOf('one'), taskOf('again', { exclusive: true })];
    const queue = queueOf(hostsOf([8, 8]), tasks);
    expect(queue.next(0).map(({ id, placement }) => `${id} ${placeText(placement)}`)).toEqual([
      'alone node1:01',
      'one node2:0',
    ]);
  });

  it('as many ranks run beside the slots of a host as are counted there', () => {
    const tasks = Array.from({ length: 10 }, (_, index) => taskOf(`cpu[${index}]`, { takesSlots: false }));
    expect(queueOf(hostsOf([4]), tasks).next(0)).toHaveLength(4);
    expect(queueOf(hostsOf([4], { cpus: 6 }), tasks).next(0)).toHaveLength(6);
  });

  it.each([
    [[0, 1, 2, 3, 4, 5, 6, 7], 4, [0, 1, 2, 3]],
    [[1, 2, 3, 4, 5, 6, 7], 4, [4, 5, 6, 7]],
    [[0, 2, 3, 5, 6, 7], 2, [2, 3]],
    [[0, 2, 4, 5], 3, [0, 4, 5]],
    [[3], 1, [3]],
    [[5, 6, 7], 2, [6, 7]],
    [[1, 2, 3, 4, 5, 6, 7], 3, [1, 2, 3]],
  ])('free slots %j give for %d ranks %j', (free, count, expected) => {
    expect(pickSlots(free, count)).toEqual(expected);
  });
});

describe('resources', () => {
  const share = { host: 'node1', ranks: 1, slots: [1], cpus: 0, memoryBytes: 0, exclusive: false };

  it('nothing is taken twice or given back twice', () => {
    const resources = new Resources(hostsOf([2, 2]));
    const placement = [share];
    resources.take(placement);
    expect(() => resources.take([{ ...share }])).toThrow('slot 1 of node1 is not free');
    expect(() => resources.take([{ ...share, host: 'node2' }, { ...share }])).toThrow('slot 1 of node1 is not free');
    expect(() => resources.giveBack([{ ...share }])).toThrow('a share of node1 is given back that nobody has');
    resources.giveBack(placement);
    expect(() => resources.giveBack(placement)).toThrow('nobody has');
    resources.take([{ ...share, host: 'node2' }, { ...share }]);
  });

  it.each([
    [[share, share], 'two shares of one host'],
    [[{ ...share, host: 'node9' }], 'no host is named node9'],
    [[{ ...share, slots: [0, 0] }], 'slot 0 of node1 is not free'],
    [[{ ...share, slots: [7] }], 'slot 7 of node1 is not free'],
    [[{ ...share, cpus: 9 }], 'node1 has no room'],
    [[{ ...share, memoryBytes: 9 }], 'node1 has no room'],
  ])('the placement %j is refused', (placement, message) => {
    const resources = new Resources(hostsOf([2, 2], { cpus: 8, memoryBytes: 8 }));
    expect(() => resources.take(placement)).toThrow(message);
  });
});
