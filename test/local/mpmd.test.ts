/** Several programs in one job, separated by `:`. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';

let directory = '';
beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'ncclrun-mpmd-')));
});
afterAll(() => rm(directory, { recursive: true }));

const say = [
  'sh',
  '-c',
  'echo "$0 $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NCCLRUN_PROGRAM ${WORD:-none} $(pwd)"',
];
const sorted = (text: string) => text.trim().split('\n').toSorted();

it('rank numbers continue across programs, and options apply to their own program', async () => {
  const second = ['-n', '2', '-x', 'WORD=b', '--wdir', directory, ...say, 'second'];
  const { status, stdout } = await Command.run(
    ['--tag-output=none', '-n', '1', '-x', 'WORD=a', ...say, 'first', ':', ...second, ':', '-n', '1', ...say, 'third'],
    { directory: '/' },
  );
  expect(status).toBe(0);
  expect(sorted(stdout)).toEqual([
    'first 0/4 0/4 0 a /',
    `second 1/4 1/4 1 b ${directory}`,
    `second 2/4 2/4 1 b ${directory}`,
    'third 3/4 3/4 2 none /',
  ]);
});

it('-genv applies to all programs, and NCCLRUN_EXPORT to those without -x', async () => {
  const programs = ['-n', '1', ...say, 'first', ':', '-n', '1', '-x', 'OTHER=1', ...say, 'second'];
  const everywhere = await Command.run(['--tag-output=none', '-genv', 'WORD', 'g', ...programs]);
  expect(sorted(everywhere.stdout).map((line) => line.split(' ')[4])).toEqual(['g', 'g']);
  const environment = { NCCLRUN_EXPORT: 'WORD=e' };
  const some = await Command.run(['--tag-output=none', ...programs], { environment });
  expect(sorted(some.stdout).map((line) => line.split(' ')[4])).toEqual(['e', 'none']);
});

it('the last program receives a ":" that follows --', async () => {
  const { stdout } = await Command.run([
    '--tag-output=none',
    '-n',
    '1',
    'true',
    ':',
    '-n',
    '1',
    '--',
    'echo',
    'a',
    ':',
    'b',
  ]);
  expect(stdout).toBe('a : b\n');
});

it('programs of different languages run in one job', async () => {
  const typescript = join(import.meta.dirname, '../../examples/all-reduce.ts');
  const { status, stderr } = await Command.run(['-n', '1', typescript, ':', '-n', '2', 'node', typescript]);
  expect({ status, stderr }).toMatchObject({ status: 0 });
});

it('--dry-run prints every program', async () => {
  const argv = ['--dry-run', '-H', 'a:2,b:2', '-np', '1', 'first', ':', '-np', '2', '-wd', '/d', 'second', 'x'];
  const { stdout } = await Command.run(argv);
  expect(stdout).toContain('ncclrun -n 1 -H a:2,b:2 first : -n 2 --wdir /d second x\n');
  const json = JSON.parse((await Command.run(['--json', ...argv])).stdout);
  expect(json.ranks).toMatchObject([
    { rank: 0, host: 'a', program: 0, localRank: 0 },
    { rank: 1, host: 'a', program: 1, localRank: 1 },
    { rank: 2, host: 'b', program: 1, localRank: 0 },
  ]);
});

/** "program host", rank by rank. */
async function placed(hostfile: string | null, argv: readonly string[]): Promise<string[]> {
  const file = join(directory, 'hosts');
  await writeFile(file, hostfile ?? '');
  const hosts = hostfile === null ? [] : ['--hostfile', file];
  const { stdout, stderr } = await Command.run(['--dry-run', '--json', ...hosts, ...argv]);
  expect(stderr).toBe('');
  const { ranks }: { ranks: { program: number; host: string }[] } = JSON.parse(stdout);
  return ranks.map(({ program, host }) => `${program} ${host}`);
}
describe('-H of each program', () => {
  const four = 'h1:1\nh2:1\nh3:1\nh4:1\n';

  it.each<readonly [string, string, string | null, string[]]>([
    [
      '+e selects hosts without ranks of earlier programs',
      '-H +n0 A : -H +e:1 B : -H +e C',
      four,
      ['0 h1', '1 h2', '2 h3', '2 h4'],
    ],
    ['+e skips the hosts that a program without -H filled', '-n 2 A : -H +e B', four, ['0 h1', '0 h2', '1 h3', '1 h4']],
    [
      '+e selects a host that an earlier -H names but does not use',
      '-n 1 -H +n0,+n1 A : -H +e:2 B',
      four,
      ['0 h1', '1 h2', '1 h3'],
    ],
    ['+e may stand beside a named host', '-n 1 -H +n3 A : -H +n0,+e:1 B', four, ['0 h4', '1 h1', '1 h2']],
    [
      'programs share the slots of a host in a hostfile',
      '-H h1:1 A : -H h1:2,h2:1 B',
      'h1:4\nh2:4\n',
      ['0 h1', '1 h1', '1 h1', '1 h2'],
    ],
    [
      'each program may use as many slots as the host has',
      '-n 1 -H h1:2 A : -n 1 -H h1:2 B',
      'h1:2\n',
      ['0 h1', '1 h1'],
    ],
    [
      'programs add their slots of a host without a hostfile',
      '-H h1:1 A : -H h1:1,h2:1 B',
      null,
      ['0 h1', '1 h1', '1 h2'],
    ],
    [
      '-H sets the slots that the hostfile leaves open',
      '-H h1:3 A : -H h2:1 B',
      'h1\nh2\n',
      ['0 h1', '0 h1', '0 h1', '1 h2'],
    ],
  ])('the hosts of each program follow its -H: %s', async (_name, argv, hostfile, expected) => {
    expect(await placed(hostfile, argv.split(' '))).toEqual(expected);
  });

  it('the launcher explains that earlier programs used all hosts', async () => {
    const file = join(directory, 'hosts');
    await writeFile(file, four);
    const argv = ['--dry-run', '--hostfile', file, 'A', ':', '-H', '+e', 'B'];
    const { status, stderr } = await Command.run(argv);
    expect(status).toBe(2);
    expect(stderr).toMatch(/some hosts without ranks of the programs before are asked for, none is left in/);
    expect(stderr).toMatch(/say with -n how many ranks each program gets/);
  });
});

it('the launcher names a program that cannot be started', async () => {
  const { status, stderr } = await Command.run([
    '-n',
    '1',
    'true',
    ':',
    '-n',
    '1',
    '--wdir',
    directory,
    'no-such-program',
  ]);
  expect(status).toBe(127);
  expect(stderr).toMatch(/cannot start no-such-program .*rank 1/);
  const lost = await Command.run(['-n', '1', 'true', ':', '-n', '1', '--wdir', `${directory}/none`, 'true']);
  expect(lost.stderr).toMatch(new RegExp(`make ${directory}/none on`));
});

it('the launcher rejects contradictory programs', async () => {
  for (const [argv, message] of [
    [['true', ':'], "no program after the ':'"],
    [[':', 'true'], "no program before the ':'"],
    [['true', ':', '--timeout', '3', 'true'], 'move --timeout before the first program'],
    [['-H', 'localhost:2', 'true', ':', 'true'], 'no slot is left for true'],
  ] as const) {
    const { status, stderr } = await Command.run(argv);
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining(message) });
  }
});
