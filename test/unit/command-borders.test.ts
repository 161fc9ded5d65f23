/** Commands at their borders: statuses, words that a parser could misread, jobs that Slurm takes, and what is ignored. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bundle } from '../../launcher/cli/commands/bundle.ts';
import { completion } from '../../launcher/cli/commands/completion.ts';
import { config } from '../../launcher/cli/commands/config.ts';
import { help } from '../../launcher/cli/commands/help.ts';
import { hosts } from '../../launcher/cli/commands/hosts.ts';
import { man } from '../../launcher/cli/commands/man.ts';
import { ps } from '../../launcher/cli/commands/ps.ts';
import { sbatch } from '../../launcher/cli/commands/sbatch.ts';
import { topo } from '../../launcher/cli/commands/topo.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { refusalTexts } from '../../launcher/cli/refusal.ts';
import type { Option } from '../../launcher/model/option.ts';
import { captured, refusal } from '../rig/captured.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-borders-'));
afterAll(() => rmSync(directory, { recursive: true }));
beforeEach(() => void vi.stubEnv('XDG_CONFIG_HOME', join(directory, 'none')));
afterEach(() => void vi.unstubAllEnvs());

it.each<[string, () => Promise<number>]>([
  ['completion', () => completion(['bash'])],
  ['config', () => config([])],
  ['help', () => help('help')],
  ['man', () => man([])],
  ['ps', () => ps([])],
])('ncclrun %s succeeds', async (_, run) => {
  expect((await captured(run)).status).toBe(0);
});

it('ncclrun ps --json prints an object, and ncclrun ps none', async () => {
  const [json, text] = [await captured(() => ps(['--json'])), await captured(() => ps([]))];
  expect(JSON.parse(json.stdout)).toEqual({ schemaVersion: 1, jobs: expect.any(Array) });
  expect(text.stdout).toMatch(/^(no job|job) /u);
});

describe('words are taken as they are written', () => {
  it.each<[string, () => Promise<number>, string]>([
    ['--no-json', () => ps(['--no-json']), '--no-json'],
    ['--json.x', () => ps(['--json.x']), '--json.x'],
    ['-hx', () => ps(['-hx']), '-hx'],
    ['007', () => ps(['007']), '"007"'],
    ['1e3', () => ps(['1e3']), '"1e3"'],
    ['-o twice', () => bundle(['-o', '/none/a', '-o', '/none/b.tar.gz', 'c']), '"c"'],
  ])('%s is refused', async (_, run, message) => {
    expect(await refusal(run)).toContain(message);
  });

  it('one host at a time', async () => {
    expect(await refusal(() => topo(['--host', 'a,b']))).toBe('--host a,b: one host at a time; name one host');
  });
});

describe('ncclrun hosts', () => {
  it.each([
    ['n[1-2]:2', ['n[1-2]   2 slots each   -H, one of n[1-2]', '2 hosts, 4 slots']],
    [
      'a:4,b',
      [
        'a   4 slots                         -H',
        'b   a slot per GPU, else per core   -H',
        '2 hosts, 4 slots and those of 1 host without a number',
      ],
    ],
    [
      'FILE',
      [
        'x    3 slots                                            1 at FILE:1 + 2 at FILE:2',
        'n1   3 slots                                            FILE:3, one of n[1-2] + FILE:4; 1 at FILE:3 + 2 at FILE:4',
        'n2   1 slot                                             FILE:3, one of n[1-2]',
        'z    a slot per GPU, else per core, at most 3, port 5   FILE:5',
        '4 hosts, 7 slots and those of 1 host without a number',
      ],
    ],
  ])('"%s" prints %j', async (words, lines) => {
    const file = join(directory, 'hosts');
    writeFileSync(file, 'x:1\nx:2\nn[1-2]:1\nn1:2\nz max_slots=3 port=5\n');
    const { stdout } = await captured(() => hosts([words === 'FILE' ? file : words]));
    expect(stdout.replaceAll(file, 'FILE').trimEnd().split('\n')).toEqual(lines);
  });
});

describe('ncclrun sbatch', () => {
  it.each([
    [0, 'anything', 'stdout'],
    [3, 'Submitted batch job 5', 'stdout'],
    [3, 'sbatch: error: no partition', 'stderr'],
  ] as const)('a status of %i with the words "%s" goes to %s', async (status, words, stream) => {
    writeFileSync(join(directory, 'sbatch'), `#!/bin/sh\necho "${words}"\nexit ${status}\n`, { mode: 0o755 });
    vi.stubEnv('PATH', `${directory}:${process.env['PATH']}`);
    vi.stubEnv('TMPDIR', directory);
    const ended = await captured(() => sbatch(['-N', '2', '--', '-n', '4', 'true']));
    expect(ended).toEqual({ status, stdout: '', stderr: '', [stream]: `${words}\n` });
    expect(readdirSync(directory).filter((name) => name.startsWith('ncclrun-sbatch-'))).toEqual([]);
  });
});

describe('what is ignored', () => {
  const position = { source: 'ncclrun.json', line: 2, column: 9, text: '', length: 1 };
  const rsh = runCommandLine.options.find(({ name }) => name === 'rsh') ?? expect.unreachable();
  const option = (flags: readonly string[], variable: string | null): Option => {
    const { environment: _, ...rest } = { ...rsh, flags };
    return variable === null ? { ...rest, environment: [] } : { ...rest, environment: [variable], project: 'never' };
  };
  const user = {
    file: { kind: 'user' as const, path: '/u/config.json' },
    found: false,
    layer: new Map(),
    refusals: [],
  };

  it.each<[string[], string | null, boolean, string]>([
    [['--rsh'], 'NCCLRUN_RSH', true, 'set it with --rsh, with NCCLRUN_RSH or in /u/config.json'],
    [['--rsh', '-r'], null, true, 'set it with --rsh or in /u/config.json'],
    [['--rsh'], 'NCCLRUN_RSH', false, 'set it with --rsh or with NCCLRUN_RSH'],
    [['--rsh'], null, false, 'set it with --rsh'],
  ])('the flags %j and the variable %j are named', (flags, variable, hasUser, remedy) => {
    const refusals = [
      { kind: 'value' as const, option: option(flags, variable), value: 'x"', position, reason: 'why' },
    ];
    const project = {
      file: { kind: 'project' as const, path: 'ncclrun.json' },
      found: true,
      layer: new Map(),
      refusals,
    };
    expect(refusalTexts(hasUser ? [project, user] : [project])).toEqual([
      `ignored "rsh": "x\\"" in ncclrun.json:2:9: why; ${remedy}`,
    ]);
  });

  it.each([
    ['ncclrun.json', './ncclrun.json'],
    ['/d/ncclrun.json', '/d/ncclrun.json'],
  ])('the file %s is named %s', (path, shown) => {
    const refusals = [{ kind: 'file' as const, path, reason: 'why', remedy: 'what' }];
    const project = { file: { kind: 'project' as const, path }, found: true, layer: new Map(), refusals };
    expect(refusalTexts([project])).toEqual([`ignored ${shown}: why; what`]);
  });
});
