/** Which options each command takes, and the numbers that they may have. */
import { describe, expect, test } from 'vitest';
import {
  configCommandLine,
  hostsCommandLine,
  perfCommandLine,
  planCommandLine,
  runCommandLine,
  topoCommandLine,
  tuneCommandLine,
} from '../../launcher/cli/options.ts';
import type { CommandLine } from '../../launcher/model/option.ts';

const job = runCommandLine.options.map(({ name }) => name);
const without = (...left: readonly string[]) => job.filter((name) => !left.includes(name));
const named = (...names: readonly string[]) => job.filter((name) => names.includes(name));
const lines = [
  runCommandLine,
  perfCommandLine,
  tuneCommandLine,
  planCommandLine,
  hostsCommandLine,
  topoCommandLine,
  configCommandLine,
];

test.each<[CommandLine, string[], string[]]>([
  [
    perfCommandLine,
    [
      'begin',
      'end',
      'factor',
      'iters',
      'warmup',
      'blocking',
      'root',
      'type',
      'op',
      'device',
      'net-sizes',
      'nics',
      'check',
    ],
    job,
  ],
  [
    tuneCommandLine,
    ['collective', 'begin', 'end', 'factor', 'iters', 'rounds', 'max-spread', 'max-load', 'device', 'table'],
    without('plan', 'doctor', 'output'),
  ],
  [
    hostsCommandLine,
    ['to', 'count', 'json', 'slots'],
    named('host', 'hostfile', 'include', 'exclude', 'resource-manager', 'version', 'help'),
  ],
  [topoCommandLine, ['from', 'topo-host', 'format', 'json'], named('rsh', 'stage', 'verbose', 'version', 'help')],
  [configCommandLine, ['explain', 'json'], without('dry-run', 'explain', 'json')],
])('$command has its own options and some of those of a job', ({ options }, own, jobs) => {
  expect(options.map(({ name }) => name)).toEqual([...own, ...jobs]);
});

const flagsOf = ({ options }: CommandLine) => options.find(({ name }) => name === 'hostfile')?.flags;

test('flags that perf has itself do not name an option of a job', () => {
  const flags = perfCommandLine.options.flatMap((option) => option.flags);
  expect(new Set(flags).size).toBe(flags.length);
  expect([flagsOf(perfCommandLine), flagsOf(runCommandLine)]).toEqual([
    ['--hostfile', '--machinefile'],
    ['--hostfile', '--machinefile', '-f'],
  ]);
});

describe('numbers', () => {
  test('have these least and greatest values', () => {
    const limits = lines.flatMap(({ options }) =>
      options.flatMap(({ name, kind }) => (kind.type === 'integer' ? [[name, [kind.minimum, kind.maximum]]] : [])),
    );
    expect(Object.fromEntries(limits)).toEqual({
      np: [1, 1_000_000],
      npernode: [1, 1_000_000],
      'simulate-hosts': [1, 1000],
      radix: [0, 1000],
      'max-restarts': [0, 1000],
      factor: [2, 2 ** 20],
      iters: [1, 1e9],
      warmup: [0, 1e9],
      root: [0, 2 ** 20],
      rounds: [1, 1000],
      'max-spread': [0, 100_000],
      'max-load': [0, 100],
      nodes: [1, 1_000_000],
      ranks: [1, 2 ** 24],
      slots: [1, 2 ** 16],
    });
  });

  test('these belong to one program of several', () => {
    const own = runCommandLine.options.filter(({ perProgram }) => perProgram === true);
    expect(own.map(({ name }) => name)).toEqual(['np', 'npernode', 'export', 'wdir', 'host']);
  });
});
