/** Commands that start no job, run in this process: what they print, and which command lines they refuse. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { config } from '../../launcher/cli/commands/config.ts';
import { hosts } from '../../launcher/cli/commands/hosts.ts';
import { run } from '../../launcher/cli/commands/run.ts';
import { sbatch } from '../../launcher/cli/commands/sbatch.ts';
import { captured, refusal } from '../rig/captured.ts';
import { repository } from '../rig/cluster.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-commands-'));
const here = process.cwd();
beforeAll(() => process.chdir(directory));
afterAll(() => {
  process.chdir(here);
  rmSync(directory, { recursive: true });
});
afterEach(() => void vi.unstubAllEnvs());

type Command = (argv: readonly string[]) => Promise<number>;

/** Without settings of the user. */
function printed(command: Command, words: string) {
  vi.stubEnv('XDG_CONFIG_HOME', join(directory, 'none'));
  return captured(() => command(words.split(' ').filter((word) => word !== '')));
}

function refused(command: Command, words: string): Promise<string> {
  vi.stubEnv('XDG_CONFIG_HOME', join(directory, 'none'));
  return refusal(() => command(words.split(' ').filter((word) => word !== '')));
}

describe('ncclrun hosts', () => {
  it.each([
    [
      'a:4,b:4,n[1-3]:2',
      [
        'a        4 slots        -H',
        'b        4 slots        -H',
        'n[1-3]   2 slots each   -H, one of n[1-3]',
        '5 hosts, 14 slots',
      ],
    ],
    ['a,b:3 --slots 5', ['a   5 slots   -H; 5 by --slots', 'b   3 slots   -H', '2 hosts, 8 slots']],
    [
      '-H a,b --exclude b',
      ['a   a slot per GPU, else per core   -H', 'b   not used                        excluded by --exclude', '1 host'],
    ],
    ['a:4,b --to openmpi', ['a slots=4', 'b']],
    ['a:4,b --to openmpi --slots 2', ['a slots=4', 'b slots=2']],
    ['a:4,b --count', ['2']],
    ['a:4,b:3 --count=slots', ['7']],
    ['one --to mpich', ['x:2', 'y:3']],
    ['one -H y', ['y   3 slots    one:2; picked by -H', 'x   not used   -H does not name it', '1 host, 3 slots']],
    [
      '-f one x:1,x',
      ['x   2 slots    one:1; picked by -H; 2 of 2 by -H', 'y   not used   -H does not name it', '1 host, 2 slots'],
    ],
  ])('"ncclrun hosts %s" prints %j', async (words, lines) => {
    writeFileSync(join(directory, 'one'), 'x slots=2\ny slots=3\n');
    expect(await printed(hosts, words)).toEqual({ status: 0, stdout: `${lines.join('\n')}\n`, stderr: '' });
  });

  it.each([
    ['a:4,b', '1 host that states'],
    ['a:4,b,c', '2 hosts that state'],
  ])('the number of slots of %s is printed with a note about hosts without a number', async (list, words) => {
    expect(await printed(hosts, `${list} --count=slots`)).toEqual({
      status: 0,
      stdout: '4\n',
      stderr: `ncclrun: without those of ${words} none (--slots N gives a number)\n`,
    });
  });

  it('--json prints what --to json does', async () => {
    const { stdout } = await printed(hosts, 'a:4 --json');
    expect(JSON.parse(stdout)).toMatchObject({ schemaVersion: 1, hosts: [{ name: 'a', slots: 4 }] });
    expect((await printed(hosts, 'a:4 --to json')).stdout).toBe(stdout);
  });

  it.each([
    ['x', 'there is no hostfile x; for a host of that name write: ncclrun hosts -H x'],
    ['.', 'there is no hostfile .; for a host of that name write: ncclrun hosts -H .'],
    ['./x,y', 'there is no hostfile ./x,y; check the name'],
    ['a:1 b:1', '"b:1" after "a:1" is one too many; one file or list; separate hosts with commas: a:4,b:4'],
    ['-H a b:2', 'two lists: b:2 and a; name one of them'],
    ['-f one two', 'two hostfiles: two and one; name one of them'],
  ])('"ncclrun hosts %s" is refused', async (words, message) => {
    for (const name of ['one', 'two']) writeFileSync(join(directory, name), 'x slots=2\n');
    expect(await refused(hosts, words)).toBe(message);
  });
});

describe('ncclrun config', () => {
  it('it prints a line for each setting with a value', async () => {
    const { stdout, stderr } = await printed(config, '-n 4 -x A=b');
    expect(stdout.split('\n').slice(0, 4)).toEqual([
      'np                4',
      'export            A=b',
      'engine            none',
      'pmi               pmi1',
    ]);
    expect(stdout).not.toContain('rank-by');
    expect(stderr).toBe('');
  });

  it('--explain prints each source, those that were overridden, and what is ignored', async () => {
    writeFileSync(join(directory, 'ncclrun.json'), '{"np": 2, "rsh": "evil", "grace": 7}');
    vi.stubEnv('NCCLRUN_NP', '3');
    vi.stubEnv('NCCLRUN_GRCE', '3');
    const { stdout, stderr } = await printed(config, '--explain -n 4');
    rmSync(join(directory, 'ncclrun.json'));
    const lines = stdout.split('\n');
    expect(lines.filter((line) => /^(setting|np|rsh|grace|plan) /u.test(line))).toEqual([
      'setting                 value                from',
      'np                      4                    -n; not NCCLRUN_NP: 3; not ncclrun.json:1:8: 2',
      'plan                    -                    not set',
      'rsh                     auto                 default',
      'grace                   7                    ncclrun.json:1:35',
    ]);
    expect(lines.slice(-5)).toEqual([
      '',
      'ignored: "rsh": "evil" (ncclrun.json:1:18): a project file may not decide which programs run',
      '',
      `in order of precedence: option, environment, ncclrun.json, ${directory}/none/ncclrun/config.json (not there), default`,
      '',
    ]);
    expect(stderr).toBe('ncclrun: NCCLRUN_GRCE is set but has no meaning\n  next: did you mean NCCLRUN_GRACE?\n');
  });

  it('it takes no words', async () => {
    expect(await refused(config, 'x')).toContain('"x" after config has no meaning');
  });
});

describe('ncclrun without a start', () => {
  it.each([
    [
      '--dry-run -n 2 -H localhost true',
      [
        'command  ncclrun -n 2 -H localhost true',
        'host     localhost   ranks 0-1   any number of slots (localhost without a count has no limit)',
      ],
    ],
    [
      '--dry-run -n 3 -H alpha:1,beta:1,c:1 true',
      [
        'command  ncclrun -n 3 -H alpha:1,beta:1,c:1 true',
        'host     alpha   rank 0   1 slot (stated at -H)',
        'host     beta    rank 1   1 slot (stated at -H)',
        'host     c       rank 2   1 slot (stated at -H)',
      ],
    ],
    [
      '--dry-run -n 1 -H a:2 true',
      ['command  ncclrun -n 1 -H a:2 true', 'host     a      rank 0   2 slots (stated at -H)'],
    ],
    [
      '--dry-run -H a true',
      [
        'command  ncclrun -H a true',
        'host     a      slots not known yet (no count at -H: as many as the host has GPUs, or cores if none)',
        'ranks    not known yet: they depend on what the hosts have; state slots (host:4), or use -N',
      ],
    ],
    [
      '--explain -n 3 -H a:2,b:2,c:2 true',
      [
        'command  ncclrun -n 3 -H a:2,b:2,c:2 true',
        'host     a      ranks 0-1   2 slots',
        '                  host:  -H',
        '                  slots: stated at -H',
        'host     b      rank 2   2 slots',
        '                  host:  -H',
        '                  slots: stated at -H',
        'not used c      no rank is left for it',
      ],
    ],
    ['--explain -H a:2,b:3', ['a   2 slots   -H', 'b   3 slots   -H', '2 hosts, 5 slots']],
  ])('"ncclrun %s" prints %j', async (words, lines) => {
    expect(await printed(run, words)).toEqual({ status: 0, stdout: `${lines.join('\n')}\n`, stderr: '' });
  });

  it('--dry-run --json prints the ranks', async () => {
    const { stdout } = await printed(run, '--dry-run --json -n 2 -H a:1,b:1,c:1 true');
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      command: ['ncclrun', '-n', '2', '-H', 'a:1,b:1,c:1', 'true'],
      hosts: [{ name: 'a' }, { name: 'b' }],
      leftOut: [{ name: 'c', reason: 'no rank is left for it' }],
      ranks: [
        { rank: 0, host: 'a', program: 0, localRank: 0, localSize: 1, cpus: null, numa: null, gpu: null },
        { rank: 1, host: 'b', program: 0, localRank: 0, localSize: 1, cpus: null, numa: null, gpu: null },
      ],
    });
    const hostsAlone = await printed(run, '--explain --json -H a:2');
    expect(JSON.parse(hostsAlone.stdout)).toMatchObject({ hosts: [{ name: 'a', slots: 2 }] });
  });

  it.each([
    ['', 'no program to run; write: ncclrun -n 4 PROGRAM; see ncclrun --help'],
    ['-n 2', 'no program to run; write: ncclrun -n 4 PROGRAM; see ncclrun --help'],
  ])('"ncclrun %s" is refused', async (words, message) => {
    expect(await refused(run, words)).toContain(message);
  });
});

describe('ncclrun sbatch', () => {
  it('--print writes the script', async () => {
    expect(await printed(sbatch, '--print -N 2 -- -n 4 /bin/true x')).toEqual({
      status: 0,
      stdout: [
        '#!/bin/bash',
        '#SBATCH --job-name=true',
        '#SBATCH -N 2',
        '',
        '# ncclrun takes hosts, tasks and GPUs from the allocation. With --signal=B:USR1@60 its ranks get SIGUSR1 60 s ahead of the time limit.',
        `exec ${repository}/bin/ncclrun -n 4 /bin/true x`,
        '',
      ].join('\n'),
      stderr: '',
    });
  });

  it.each([
    ['true', "sbatch's options and the program have no -- between them; write: ncclrun sbatch "],
    ['-- -n 2', 'no program to run; write: ncclrun sbatch '],
    ['--print -- -n x true', '-n is "x"; '],
  ])('"ncclrun sbatch %s" is refused', async (words, message) => {
    expect(await refused(sbatch, words)).toContain(message);
  });
});

it.each<[string, Command, string]>([
  ['hosts', hosts, 'ncclrun hosts [FILE|LIST] [options]'],
  ['config', config, 'ncclrun config [--explain] [options of a job]'],
  ['run', run, 'ncclrun [options] PROGRAM [arguments]'],
  ['sbatch', sbatch, "ncclrun sbatch [--print] [sbatch's options] -- [options] PROGRAM [arguments]"],
])('%s --help prints its usage', async (_name, command, usage) => {
  expect((await printed(command, '--help')).stdout).toContain(`\nusage: ${usage}\n`);
});
