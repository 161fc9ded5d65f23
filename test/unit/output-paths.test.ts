/** The files that --output names, and paths that lead out of a project's directory. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { outputRequest } from '../../launcher/cli/output-request.ts';
import { whyOutside } from '../../launcher/cli/outside.ts';
import { outputPath } from '../../launcher/model/output-pattern.ts';
import { failureFrom } from './failure-from.ts';

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'ncclrun-output-paths-')));
afterAll(() => rmSync(directory, { recursive: true }));

const paths = (given: readonly string[], filename: string | null = null) =>
  outputRequest(given, filename).files.map(({ parts, given: as }) => [
    as,
    outputPath({ given: as, parts }, { rank: 3, host: 'h', stream: 'stderr', ranks: 11 }),
  ]);

const flags = (...given: string[]) => {
  const { shown, tag, timestamp, merge } = outputRequest(given, null);
  return [shown, tag, timestamp, merge].map(Number).join('');
};

describe('--output', () => {
  it.each<[string[], string | null, string[][]]>([
    [['dir=d'], null, [['--output dir=d', 'd/rank.3.stderr']]],
    [['file=%h-%r-%n-%t-100%%'], null, [['--output file=%h-%r-%n-%t-100%%', 'h-3-11-stderr-100%']]],
    [['tag,file=a,b'], null, [['--output file=a,b', 'a,b']]],
    [
      ['file=a:nocopy', 'dir=d'],
      null,
      [
        ['--output file=a:nocopy', 'a'],
        ['--output dir=d', 'd/rank.3.stderr'],
      ],
    ],
    [[], 'f', [['--output-filename f', 'f/1/rank.03/stderr']]],
    [[], null, []],
  ])('--output %j with --output-filename %j names the files of a rank', (given, filename, expected) => {
    expect(paths(given, filename)).toEqual(expected);
  });

  it('words beside the files have their effects alone', () => {
    expect([
      flags('file=a'),
      flags('file=a:NoCopy'),
      flags('tag'),
      flags('timestamp'),
      flags('merge'),
      flags('merge-stderr-to-stdout'),
    ]).toEqual(['1000', '0000', '1100', '1010', '1001', '1001']);
    expect(flags('tag,merge', 'timestamp,')).toBe('1111');
  });

  it.each([
    ['dri=', '--output is "dri="; did you mean dir=?'],
    ['tga', '--output is "tga"; did you mean tag?'],
    ['whatever', '--output is "whatever"'],
    ['file=:nocopy', '--output file=:nocopy names no file'],
    ['file=%x', '--output file=%x: "%x" has no meaning in a file\'s name'],
    ['file=%', '--output file=%: "%" has no meaning in a file\'s name'],
  ])('--output %s is refused', (given, message) => {
    expect(failureFrom(() => outputRequest([given], null))).toMatchObject({ type: 'usage', message });
  });
});

describe('a path of a project file', () => {
  mkdirSync(join(directory, 'project/logs/deep'), { recursive: true });
  mkdirSync(join(directory, 'project-other'));
  for (const [name, to] of [
    ['a1b', '/'],
    ['a1', '../project-other'],
    ['aXbXc', '/'],
    ['abab', '/'],
    ['loop', 'loop'],
    ['within', 'logs'],
    ['logs/deep/out', '/'],
  ] as const)
    symlinkSync(to, join(directory, 'project', name));
  const project = join(directory, 'project');
  /** `*` stands for a field. */
  const why = (pattern: string, root = project) =>
    whyOutside(
      root,
      pattern.split(/(\*)/u).map((piece) => (piece === '*' ? { field: 'rank' as const } : { text: piece })),
    );

  it.each<[string, string | null]>([
    ['/x', 'this is an absolute path'],
    ['a/../b', 'this leads out of it'],
    ['a/.git/x', 'this is a hidden file'],
    ['./logs//x', null],
    ['logs/x', null],
    ['within/x', null],
    ['none/x', null],
    ['a1b', `${project}/a1b leads to /`],
    ['a1/x', `${project}/a1 leads to ${directory}/project-other`],
    ['loop', `${project}/loop leads nowhere (ELOOP)`],
    ['logs/deep/out', `${project}/logs/deep/out leads to /`],
    ['within/deep/out', `${project}/logs/deep/out leads to /`],
    ['logs/*/out', `${project}/logs/deep/out leads to /`],
    ['a*b', `${project}/a1b leads to /`],
    ['*b*b', `${project}/abab leads to /`],
    ['aX*b*c', `${project}/aXbXc leads to /`],
    ['aXbX*bXc', null],
    ['ab*ab', `${project}/abab leads to /`],
    ['aba*bab', null],
    ['a*ba*b', `${project}/abab leads to /`],
    ['ab*ba*b', null],
    ['none/*', null],
    ['*z', null],
  ])('the pattern %s leads out of the directory: %j', (pattern, expected) => {
    expect(why(pattern)).toBe(expected);
  });

  it('nothing leads out of the root directory', () => {
    expect(why('tmp/x', '/')).toBeNull();
  });
});
