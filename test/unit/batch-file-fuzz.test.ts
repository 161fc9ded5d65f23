/** Whatever is in a file of jobs: a batch, or a usage error with a place in the file; nothing else is thrown, nothing runs away. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { taskOf } from '../../launcher/batch/file/task.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { failureText } from '../../launcher/report/failure-text.ts';
import { readText } from '../rig/batch-files.ts';
import { randomBytes, seededRandom, type Random } from '../rig/random.ts';

/** Another one with NCCLRUN_TEST_SEED=N. */
const firstSeed = Number(process.env['NCCLRUN_TEST_SEED'] ?? 70_000);

const folder = join(import.meta.dirname, '../../examples/batch');
const samples = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));

const pieces = [
  '\n',
  ' ',
  '  ',
  '\t',
  ': ',
  ':',
  ',',
  '- ',
  '{',
  '}',
  '[',
  ']',
  '"',
  "'",
  '#',
  '&a ',
  '*a',
  '!x ',
  '|',
  '>',
  '?',
  '%',
  '@',
  '\0',
  '\r\n',

  '~',
  'null',
  'true',
  '0',
  '-1',
  '1e9',
  '.nan',
  '.inf',
  '0x10',
  '1..3',
  '0-3',
  '5%2',
  '${{ array.lr }}',
  '${{',
  '}}',
  '$${{',
  '---\n',
  '...\n',

  'nodes',
  'ntasks: 3\n',
  'array: ',
  'after: ',
  'env: ',
  'retry: ',
  'name: a',
  'defaults:\n',
  '__proto__',
  'constructor',
  'toString: 1',
  '<<: ',
  'node[1-4]',
  'H100:8',
  '200G',
  '12:30',
  'USR1@120',
  'afterok:a:b',
  '\ufeff',
  '\u{1f600}',
  '\ud800',
  '\u2028',
];

function mutated(text: string, random: Random): string {
  let result = text;
  for (let count = 1 + random(4); count > 0; count -= 1) {
    const at = random(result.length + 1);
    const length = random(3) === 0 ? random(40) : random(3);
    const piece =
      random(4) === 0
        ? result.slice(random(result.length), random(result.length))
        : (pieces[random(pieces.length)] ?? '');
    result = result.slice(0, at) + piece + result.slice(at + length);
  }
  return result;
}

/** Says how it went, so that a test can see that it tried both. */
function survives(content: string | Uint8Array, where: string): 'batch' | 'mistake' {
  try {
    const batch = readText(content);
    for (const job of batch.jobs) taskOf(batch, job, job.array?.tasks[0] ?? null);
    expect(new Set(batch.jobs.map(({ name }) => name)).size, where).toBe(batch.jobs.length);
    return 'batch';
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw new Error(where, { cause: error });
    const { position, message, remedy } = error.failure;
    expect(message !== '' && remedy !== null && remedy !== '', where).toBe(true);
    if (position === undefined) throw new Error(`no position: ${where}`, { cause: error });
    const text = Buffer.from(content).toString();
    const lines = text.replace(/^\ufeff/u, '').split('\n');
    const line = lines[position.line - 1]?.replace(/\r$/u, '');
    expect(position.text, where).toBe(line);
    expect(position.column, where).toBeGreaterThan(0);
    expect(position.column, where).toBeLessThanOrEqual(position.text.length + 1);
    expect(failureText(error.failure).sentence, where).toContain(`batch.yaml:${position.line}:${position.column}: `);
    return 'mistake';
  }
}

it('a mutated file is a batch or has a mistake with its place', () => {
  const seen = { batch: 0, mistake: 0 };
  for (let seed = firstSeed; seed < firstSeed + 3000; seed += 1) {
    const random = seededRandom(seed);
    const text = mutated(samples[random(samples.length)] ?? '', random);
    seen[survives(text, `seed ${seed}: ${JSON.stringify(text)}`)] += 1;
  }
  expect(seen.batch).toBeGreaterThan(100);
  expect(seen.mistake).toBeGreaterThan(1000);
}, 60_000);

it('bytes without a meaning have a mistake with its place', () => {
  for (let seed = firstSeed; seed < firstSeed + 500; seed += 1) {
    const random = seededRandom(seed);
    const bytes = randomBytes(2 + random(60), random);
    // A mark of UTF-16 is a mistake of the whole file.
    if (bytes[0] !== 0xff && bytes[0] !== 0xfe) survives(bytes, `seed ${seed}: ${bytes.join()}`);
  }
});

it('words of the language in no order have a mistake with its place', () => {
  for (let seed = firstSeed; seed < firstSeed + 1000; seed += 1) {
    const random = seededRandom(seed);
    const words = Array.from({ length: random(30) }, () => pieces[random(pieces.length)] ?? '');
    survives(words.join(''), `seed ${seed}: ${JSON.stringify(words.join(''))}`);
  }
});

it.each<[string, string]>([
  ['brackets', `jobs: ${'['.repeat(20_000)}`],
  ['lists', `jobs:\n${'- '.repeat(5000)}`],
  ['maps', `jobs: ${'{a: '.repeat(5000)}`],
  ['long keys', `${'k'.repeat(50_000)}: 1`],
  ['long values', `jobs: [{ name: ${'k'.repeat(50_000)} }]`],
])('too many %s have a mistake with its place', (_what, text) => {
  expect(survives(text, text.slice(0, 20))).toBe('mistake');
});

it('a chain of many jobs is read', () => {
  const jobs = Array.from(
    { length: 2000 },
    (_, index) => `- { name: j${index}, command: x${index === 0 ? '' : `, after: j${index - 1}`} }`,
  );
  expect(readText(`jobs:\n${jobs.toReversed().join('\n')}\n`).jobs).toHaveLength(2000);
});

it.each<[string, string]>([
  ['references that do not end', `jobs: [{ name: a, command: "${'${{ '.repeat(50_000)}" }]`],
  [
    'names of jobs',
    `jobs: [{ name: a, command: x, after: "${Array.from({ length: 20_000 }, (_, index) => `b${index}`).join()}" }]`,
  ],
  ['exclusions', `jobs: [{ name: a, command: x, array: { b: 1..9, exclude: [${'{ b: 1 }, '.repeat(1001)}] } }]`],
  [
    'variables of defaults',
    `defaults: { env: {${Array.from({ length: 2000 }, (_, index) => `A${index}: 1`).join()}} }\njobs:\n${'- name: a\n'.repeat(501)}`,
  ],
])('too many %s take no long time', (_what, text) => {
  expect(survives(text, text.slice(0, 20))).toBe('mistake');
});
