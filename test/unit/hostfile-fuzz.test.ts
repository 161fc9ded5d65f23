/** Whatever is in a hostfile or a list: hosts, or the diagnostic with a place in the text; nothing else is thrown, nothing runs away. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { printHosts } from '../../launcher/allocation/print/grammars.ts';
import { grammarNames } from '../../launcher/allocation/print/grammar-names.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { hostfileGrammars, randomHostfile } from '../rig/hostfiles.ts';
import { randomBytes, seededRandom, type Random } from '../rig/random.ts';
import { fakeMachine } from './allocation-machine.ts';

/** Another one with NCCLRUN_TEST_SEED=N. */
const firstSeed = Number(process.env['NCCLRUN_TEST_SEED'] ?? 50_000);

const folder = join(import.meta.dirname, '../../hostfiles');
const samples = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));

/** Says how it went, so that a test can see that it tried both. */
function survives(
  content: string,
  hostList: string | null,
  include: string | null,
  seed: number,
): 'hosts' | 'diagnostic' {
  const where = `seed ${seed}: ${JSON.stringify({ content, hostList, include })}`;
  const machine = fakeMachine({ hosts: content, list: content });
  try {
    const { hosts } = allocateHosts({ hostfile: 'hosts', hostList, include, exclude: null }, machine);
    for (const grammar of grammarNames) {
      const { text, lost } = printHosts(hosts, grammar);
      expect(text === '' && lost.length === 0, where).toBe(false);
    }
    return 'hosts';
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.type !== 'hostfile') throw new Error(where, { cause: error });
    const { position, message, remedy } = error.failure;
    expect(
      [message, remedy].every((text) => text !== null && text !== ''),
      where,
    ).toBe(true);
    if (position !== null) {
      const text = { hosts: content, list: content, '-H': hostList, '--include': include }[position.source] ?? '';
      const line = position.source.startsWith('-')
        ? text
        : text.replace(/^\uFEFF/u, '').split(/\r\n|[\r\n]/u)[position.line - 1];
      expect(position.text, where).toBe(line);
      expect(position.column, where).toBeGreaterThan(0);
      expect(position.column, where).toBeLessThanOrEqual(position.text.length + 1);
    }
    return 'diagnostic';
  }
}

function rounds(count: number, content: (random: Random) => readonly [string, string | null, string | null]): void {
  const seen = { hosts: 0, diagnostic: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const [text, hostList, include] = content(seededRandom(seed));
    seen[survives(text, hostList, include, seed)] += 1;
  }
  expect(seen.diagnostic).toBeGreaterThan(count / 20);
}

const pick = <Item>(items: readonly Item[], random: Random): Item | undefined => items[random(items.length)];

/** A few characters lost, doubled, changed or brought in from elsewhere. */
function mutated(text: string, random: Random): string {
  let result = text;
  for (let times = 0; times <= random(4); times += 1) {
    const at = random(result.length + 1);
    const length = random(4);
    const strange = [
      '[',
      ']',
      '-',
      ',',
      ':',
      '=',
      '@',
      '^',
      '+',
      '#',
      '%',
      '(x',
      ')',
      '\0',
      '\u00e9',
      '\n',
      '9999999',
      '0',
      ' ',
    ];
    const insert = [pick(strange, random) ?? '', result.slice(at, at + 6), ''][random(3)] ?? '';
    result = result.slice(0, at) + insert + result.slice(at + (random(2) === 0 ? length : 0));
  }
  return result;
}

test('random bytes give hosts or a diagnostic', () => {
  rounds(2000, (random) => {
    const bytes = () => Buffer.from(randomBytes(random(60), random)).toString(random(2) === 0 ? 'utf8' : 'latin1');
    return [bytes(), random(2) === 0 ? bytes() : null, null];
  });
});

test('words of the grammars in any order give hosts or a diagnostic', () => {
  const words =
    'node1 node[1-3] : 4 slots = max_slots [ ] :: ::1 @ ^ # \n , \t \0 \u00e9 + +n0 +e - TASKS_PER_NODE 2(x3) port user [08-11] ^list 65537 ;'.split(
      ' ',
    );
  const phrase = (random: Random) =>
    Array.from({ length: random(12) }, () => pick(words, random)).join(random(3) === 0 ? ' ' : '');
  rounds(5000, (random) => [
    phrase(random),
    random(2) === 0 ? phrase(random) : null,
    random(3) === 0 ? phrase(random) : null,
  ]);
});

test('mutated samples and hostfiles give hosts or a diagnostic', () => {
  rounds(4000, (random) => {
    const grammar = pick(hostfileGrammars, random) ?? 'mpich';
    const text = random(2) === 0 ? (pick(samples, random) ?? '') : randomHostfile(grammar, random).text;
    const list = ['+n0,+e:2', 'node1:2,-node2', 'a[1-3]:4', '^list', '[fe80::1]:4'];
    const filters = ['node1:0,2@node2', 'worker-[0-1]:1'];
    return [
      mutated(text, random),
      random(3) === 0 ? mutated(pick(list, random) ?? '', random) : null,
      random(4) === 0 ? mutated(pick(filters, random) ?? '', random) : null,
    ];
  });
});
