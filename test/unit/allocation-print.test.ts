import { describe, expect, test } from 'vitest';
import { addUp } from '../../launcher/allocation/slots/add-up.ts';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { parseHostfile } from '../../launcher/allocation/grammar/hostfile.ts';
import { foldNames } from '../../launcher/text/fold-names.ts';
import { printHosts } from '../../launcher/allocation/print/grammars.ts';
import type { HostSlots } from '../../launcher/model/types.ts';
import { hostfileGrammars, randomHostfile, type StatedHost } from '../rig/hostfiles.ts';
import { seededRandom } from '../rig/random.ts';
import { fakeMachine } from './allocation-machine.ts';

const machine = fakeMachine();
const read = (text: string): readonly HostSlots[] => addUp(parseHostfile(text, 'hosts'), machine).hosts;
const stated = ({ name, user, port, slots, maxSlots }: HostSlots): StatedHost => ({
  name,
  user,
  port,
  slots,
  maxSlots,
});

/** Another one with NCCLRUN_TEST_SEED=N. */
const firstSeed = Number(process.env['NCCLRUN_TEST_SEED'] ?? 20_000);

describe('a thousand random hostfiles', () => {
  test.each(hostfileGrammars)('random %s hostfiles keep their meaning when read and printed', (grammar) => {
    for (let seed = firstSeed; seed < firstSeed + 1000; seed += 1) {
      const { text, hosts } = randomHostfile(grammar, seededRandom(seed));
      const where = `seed ${seed}:\n${text}`;
      const first = read(text);
      expect(first.map(stated), where).toEqual(hosts);
      const printed = printHosts(first, grammar);
      expect(printed.lost, where).toEqual([]);
      const second = read(printed.text);
      expect(second.map(stated), `${where}\nprinted:\n${printed.text}`).toEqual(hosts);
      expect(printHosts(second, grammar).text, where).toBe(printed.text);
    }
  });

  test('a hostfile keeps its meaning in every grammar that can express it', () => {
    let compared = 0;
    for (let seed = firstSeed; seed < firstSeed + 200; seed += 1) {
      for (const from of hostfileGrammars) {
        const hosts = read(randomHostfile(from, seededRandom(seed)).text);
        for (const to of hostfileGrammars) {
          const { text, lost } = printHosts(hosts, to);
          if (lost.length > 0) continue;
          expect(read(text).map(stated), `seed ${seed}, ${from} to ${to}:\n${text}`).toEqual(hosts.map(stated));
          compared += 1;
        }
      }
    }
    expect(compared).toBeGreaterThan(2000);
  });
});

describe('host names as ranges', () => {
  test.each([
    ['a1 a2 a3', 'a[1-3]'],
    ['a1', 'a1'],
    ['a01 a02 a10 a11', 'a[01-02,10-11]'],
    ['a9 a10 a11', 'a[9-11]'],
    ['a09 a10 a9', 'a[09-10,9]'],
    ['a3 a2 a1', 'a[3,2,1]'],
    ['a1 b a2', 'a1 b a2'],
    ['r1-n1 r1-n2 r2-n1 r2-n2', 'r1-n[1-2] r2-n[1-2]'],
    ['10.0.0.1 10.0.0.2', '10.0.0.[1-2]'],
    ['n1.c2 n2.c2', 'n[1-2].c2'],
    ['fe80::1 fe80::2', 'fe80::1 fe80::2'],
    ['a1x a2y', 'a1x a2y'],
    ['a1234567890123456 a1234567890123457', 'a1234567890123456 a1234567890123457'],
  ])('foldNames joins %s as far as possible', (names, folded) => {
    expect(foldNames(names.split(' ')).join(' ')).toBe(folded);
  });
});

test('the Slurm grammar uses ranges only at the end of a name', () => {
  const hosts = read('n1x:2\nn2x:2\nr1-n1:1\nr1-n2:1\n10.0.0.1\n10.0.0.2');
  expect(printHosts(hosts, 'slurm').text).toBe('n1x,n2x,r1-n[1-2] TASKS_PER_NODE=2(x2),1(x2)\n10.0.0.[1-2]\n');
});

describe('what a grammar cannot express', () => {
  const { hosts } = allocateHosts(
    { hostfile: 'hosts', hostList: null, include: 'n1@n2@n3@[fe80::1]' },
    fakeMachine({ hosts: 'alice@n1:4\nn2 slots=4 max_slots=8 port=23\nn3\n[fe80::1]:2\nn4:1' }),
  );
  test.each([
    ['openmpi', []],
    ['mpich', ['has no ports: n2', 'has no max_slots: n2']],
    [
      'deepspeed',
      [
        'has no users: n1',
        'has no ports: n2',
        'has no max_slots: n2',
        'has no IPv6 addresses: fe80::1',
        'needs a number of slots: n3 (--slots N gives one)',
      ],
    ],
    ['slurm', ['has no users: n1', 'has no ports: n2', 'has no max_slots: n2', 'has no IPv6 addresses: fe80::1']],
    [
      'pdsh',
      [
        'has no ports: n2',
        'has no numbers of slots: n[1-2], fe80::1',
        'has no max_slots: n2',
        'has no IPv6 addresses: fe80::1',
      ],
    ],
    ['json', []],
  ] as const)('printHosts lists what the %s grammar cannot express', (grammar, lost) => {
    expect(printHosts(hosts, grammar).lost).toEqual(
      lost.map((words) => expect.stringContaining(`${grammar} ${words}`)),
    );
  });
});
