/** What a rank finds when it starts: arguments, environment, directory, streams. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

let directory = '';
beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'ncclrun-ranks-')));
});
afterAll(() => rm(directory, { recursive: true }));

it('a rank receives its arguments unchanged', async () => {
  const typed = [
    '--lr',
    '007',
    '1e3',
    '-n',
    '4',
    '--',
    '',
    'a b',
    "it's",
    '$HOME',
    'x=y',
    '--json',
    '*',
    'ü\n',
    '-np4',
  ];
  const { stdout } = await Command.run(['-n', '1', 'sh', '-c', 'printf "%s\\0" "$@"', 'sh', ...typed]);
  expect(stdout.split('\0').slice(0, -1)).toEqual(typed);
});

it('TypeScript and JavaScript programs run on Node with their arguments', async () => {
  for (const extension of ['ts', 'mts', 'js', 'mjs']) {
    const file = join(directory, `program.${extension}`);
    const typed = extension.endsWith('ts') ? ': string' : '';
    await writeFile(file, `const word${typed} = process.argv[2] ?? '';\nprocess.stdout.write(word + '\\n');\n`);
    expect(await Command.run(['-n', '1', file, '--flag'])).toMatchObject({ status: 0, stdout: '--flag\n' });
  }
});

describe('the environment of a rank', () => {
  it('a rank has the variables that torchrun and Open MPI programs read', async () => {
    const names = [
      'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE',
      'OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_LOCAL_RANK',
      'OMPI_COMM_WORLD_NODE_RANK NCCLRUN_RANK NCCLRUN_SIZE NCCLRUN_LOCAL_RANK',
    ].flatMap((line) => line.split(' '));
    const script = names.map((name) => `printf '%s ' "$${name}"`).join('; ');
    const { stdout } = await Command.run(['-n', '2', '--tag-output=none', 'sh', '-c', `${script}; echo`]);
    const expected = [0, 1].map((rank) => [rank, 2, rank, 2, 0, 1, 2, rank, 2, rank, rank, rank, 2, rank].join(' '));
    expect(
      stdout
        .trim()
        .split(' \n')
        .map((line) => line.trim())
        .toSorted(),
    ).toEqual(expected);
  });

  it('all ranks have the same MASTER_ADDR and MASTER_PORT', async () => {
    const { stdout } = await Command.run([
      '-n',
      '3',
      '--tag-output=none',
      'sh',
      '-c',
      'echo "$MASTER_ADDR $MASTER_PORT"',
    ]);
    const lines = stdout.trim().split('\n');
    expect(new Set(lines).size).toBe(1);
    expect(Number(lines[0]?.split(' ')[1])).toBeGreaterThan(1023);
  });

  it('-x accepts VAR, VAR=value and PREFIX*', async () => {
    const environment = { PLAIN_WORD: 'from here', GROUP_A: 'a', GROUP_B: 'b c' };
    const script = 'printf "%s|" "$PLAIN_WORD" "$GROUP_A" "$GROUP_B" "$GIVEN"; echo';
    const options = ['-x', 'PLAIN_WORD', '-x', 'GROUP_*', '-x', 'GIVEN=1=2 3'];
    const { stdout } = await Command.run(['-n', '1', ...options, 'sh', '-c', script], { environment });
    expect(stdout).toBe('from here|a|b c|1=2 3|\n');
  });

  it('a rank inherits no descriptor of ours but its PMI connection', async () => {
    const { stdout } = await Command.run(['-n', '1', 'sh', '-c', 'exec 9</proc/self/fd; ls /proc/$$/fd']);
    expect(stdout.trim().split('\n')).toEqual(['0', '1', '2', '29', '9']);
    const without = await Command.run(['--pmi', 'none', '-n', '1', 'sh', '-c', 'exec 9</proc/self/fd; ls /proc/$$/fd']);
    expect(without.stdout.trim().split('\n')).toEqual(['0', '1', '2', '9']);
  });
});

it('a rank starts in the current directory or that of --wdir', async () => {
  expect((await Command.run(['-n', '1', 'pwd'], { directory })).stdout).toBe(`${directory}\n`);
  expect((await Command.run(['-n', '1', '--wdir', directory, 'pwd'])).stdout).toBe(`${directory}\n`);
  const { stdout } = await Command.run(['-n', '1', '--wdir', directory, 'printenv', 'PWD']);
  expect(stdout).toBe(`${directory}\n`);
});

describe('standard input', () => {
  it('rank 0 reads standard input, and the others get end of file', async () => {
    await using steering = await Steering.open();
    const options = { stdin: 'pipe' } as const;
    await using command = Command.start(['-n', '3', ...steering.options, steering.program], options);
    const ranks = await steering.ranks(3);
    const reading = Promise.all(ranks.map((rank) => rank.tell({ do: 'readStdin' })));
    const text = 'line\n'.repeat(200_000); // more than any buffer on the way
    command.process.stdin?.end(text);
    const [first, ...others] = await reading;
    expect(first === text).toBe(true);
    expect(others).toEqual(['', '']);
  });

  it('unread standard input does not disturb a rank', async () => {
    await using command = Command.start(['-n', '1', '/bin/true'], { stdin: 'pipe' });
    command.process.stdin?.on('error', () => {}); // it may be closed under our hands
    command.process.stdin?.write('x'.repeat(1 << 20));
    expect((await command.outcome).status).toBe(0);
  });
});
