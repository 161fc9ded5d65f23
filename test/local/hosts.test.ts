/** Hosts as the command reads, shows and converts them. Nothing is started but on this machine. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-hosts-'));
  await writeFile(join(directory, 'hosts'), 'node[01-04] slots=8\nalice@big slots=16 max_slots=32\n^node03\n');
});
afterAll(() => rm(directory, { recursive: true }));

async function succeeds(...argv: string[]): Promise<{ stdout: string; stderr: string }> {
  const { status, stdout, stderr } = await Command.run(argv, { directory });
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  return { stdout, stderr };
}

async function refused(...argv: string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(argv, { directory });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
  expect(stderr).toMatch(/^ {2}next: /m);
  return stderr;
}

describe('ncclrun hosts', () => {
  it('ncclrun hosts shows the slots of each host and their source', async () => {
    const { stdout } = await succeeds('hosts', 'hosts');
    expect(stdout.split('\n')).toEqual([
      'node[01-02,04]   8 slots each           hosts:1, one of node[01-04]',
      'alice@big        16 slots, at most 32   hosts:2',
      'node03           not used               excluded at hosts:3',
      '4 hosts, 40 slots',
      '',
    ]);
  });

  it.each([
    ['openmpi', 'node01 slots=8\nnode02 slots=8\nnode04 slots=8\nalice@big slots=16 max_slots=32\n', ''],
    ['mpich', 'node01:8\nnode02:8\nnode04:8\nalice@big:16\n', 'max_slots: big'],
    ['deepspeed', 'node01 slots=8\nnode02 slots=8\nnode04 slots=8\nbig slots=16\n', 'users: big'],
    ['horovod', 'node01:8,node02:8,node04:8,big:16\n', 'users: big'],
    ['slurm', 'node[01-02,04],big TASKS_PER_NODE=8(x3),16\n', 'users: big'],
    ['pdsh', 'node[01-02,04],alice@big\n', 'numbers of slots: node[01-02,04], big'],
  ])('ncclrun hosts writes the %s grammar and reports what it lacks', async (grammar, text, lost) => {
    const { stdout, stderr } = await succeeds('hosts', 'hosts', '--to', grammar);
    expect(stdout).toBe(text);
    if (lost === '') expect(stderr).toBe('');
    else expect(stderr).toContain(`ncclrun: not written, ${grammar} has no ${lost}`);
  });

  it('ncclrun hosts --json writes JSON', async () => {
    const { stdout } = await succeeds('hosts', 'hosts', '--json');
    const host = { user: 'alice', name: 'big', slots: 16, maxSlots: 32, port: null, devices: null, local: false };
    expect(JSON.parse(stdout)).toMatchObject({ schemaVersion: 1, hosts: [{}, {}, {}, host] });
    expect((await succeeds('hosts', 'hosts', '--to', 'json')).stdout).toBe(stdout);
  });

  it('--count prints the number of hosts or slots', async () => {
    expect((await succeeds('hosts', 'hosts', '--count')).stdout).toBe('4\n');
    expect((await succeeds('hosts', 'hosts', '--count=slots')).stdout).toBe('40\n');
    const partly = await succeeds('hosts', 'a:2,b', '--count=slots');
    expect(partly.stdout).toBe('2\n');
    expect(partly.stderr).toContain('without those of 1 host that states none');
    expect((await succeeds('hosts', 'a:2,b', '--slots', '8', '--count=slots')).stdout).toBe('10\n');
  });

  it('ncclrun hosts reads a list, standard input and the options of a job', async () => {
    expect((await succeeds('hosts', 'n[08-11]:2', '--to', 'mpich')).stdout).toBe('n08:2\nn09:2\nn10:2\nn11:2\n');
    expect((await succeeds('hosts', '-H', 'n1', '--to', 'mpich')).stdout).toBe('n1\n');
    expect((await succeeds('hosts', 'hosts', '-H', '+n0,+e:1', '--to', 'mpich')).stdout).toBe('node01:8\nnode02:8\n');
    expect((await succeeds('hosts', 'hosts', '--exclude', 'node[01-04]', '--to', 'mpich')).stdout).toBe(
      'alice@big:16\n',
    );
    await using command = Command.start(['hosts', '-', '--to', 'pdsh'], { directory, stdin: 'pipe' });
    command.process.stdin?.end('n1\nn2\n');
    expect(await command.outcome).toMatchObject({ status: 0, stdout: 'n[1-2]\n' });
  });

  it('every sample hostfile survives printing and reading again', async () => {
    for (const grammar of ['openmpi', 'mpich', 'deepspeed', 'horovod', 'slurm', 'pdsh']) {
      const sample = join(repository, 'hostfiles', grammar);
      const printed = await succeeds('hosts', sample, '--to', grammar);
      await writeFile(join(directory, 'printed'), printed.stdout);
      const again = await succeeds('hosts', 'printed', '--to', grammar);
      expect(again.stdout).toBe(printed.stdout);
      expect((await succeeds('hosts', sample)).stdout).toMatch(/^\d+ hosts(, \d+ slots.*)?$/m);
    }
  });

  it('ncclrun hosts does not mistake a misspelt file name for a host', async () => {
    expect(await refused('hosts', 'hostz')).toMatch(/there is no hostfile hostz[\s\S]*-H hostz/);
    expect(await refused('hosts', './a,b')).toContain('there is no hostfile ./a,b');
    expect(await refused('hosts', 'hosts', 'hosts')).toContain('one too many');
    expect(await refused('hosts', 'hosts', '-f', 'hosts')).toContain('two hostfiles');
    expect(await refused('hosts', 'a:1', '-H', 'b:1')).toContain('two lists');
    expect(await refused('hosts', 'hosts', '--to', 'openmp')).toContain('openmpi');
  });

  it('ncclrun hosts shows the position of an error and rejects lists that exceed the limits', async () => {
    await writeFile(join(directory, 'wrong'), 'node1 slots=8\nnode[1-3 slots=8\n');
    expect(await refused('hosts', 'wrong')).toMatch(
      /wrong:2:5: the "\[" of a range[\s\S]*\n {4}node\[1-3 slots=8\n {8}~/,
    );
    expect(await refused('hosts', 'a[1-100000000]')).toMatch(/names 100000000 hosts[\s\S]*131072/);
    expect(await refused('hosts', '/dev/zero')).toContain('64 MiB');
    expect(await refused('hosts', '-f', directory)).toContain('it is a directory');
  });
});

const dry = async (...argv: string[]) => (await succeeds('--dry-run', ...argv, 'true')).stdout;

describe('the mapping of a job', () => {
  it('a job maps ranges, slots per host and relative hosts', async () => {
    expect(await dry('-w', 'n[08-09]:2')).toMatch(/n08 {2}.*ranks 0-1[\s\S]*n09 {2}.*ranks 2-3/);
    expect(await dry('--hostfile', 'hosts', '-H', '+n1,+e:1')).toMatch(/node02 .*ranks 0-7[\s\S]*node01 .*ranks 8-15/);
    expect(await dry('-w', '^hosts', '-n', '9')).toMatch(/node01 .*ranks 0-7[\s\S]*node02 .*rank 8/);
  });

  it('--include and --exclude select hosts and slots', async () => {
    expect(await dry('-f', 'hosts', '--include', 'node02:0,5@node01')).toMatch(
      /node01 .*0-7[\s\S]*node02 .*8-9 .*\(0,5\)/,
    );
    expect(await dry('-f', 'hosts', '--exclude', 'node[01-02]@big:0-14')).toMatch(
      /node04 .*0-7[\s\S]*big .*rank 8 .*\(15\)/,
    );
    const both = await refused('--include', 'a', '--exclude', 'b', '-H', 'a,b', 'true');
    expect(both).toContain('--include and --exclude cannot be given together');
    expect(await refused('-f', 'hosts', '--include', 'node9', 'true')).toMatch(
      /--include:1:1: node9 is none of the hosts/,
    );
  });

  it('--dry-run knows the slots of this machine without an agent', async () => {
    expect(await dry('-H', 'localhost')).toMatch(
      /^host {5}localhost {3}ranks? 0.* slots? \(localhost has \d+ (GPUs|cores and no GPU)\)$/m,
    );
    const { outcome, ranks } = await Command.result(['-H', 'localhost', 'true'], { directory });
    expect(outcome.status).toBe(0);
    expect(JSON.parse(await dry('--json', '-H', 'localhost'))).toMatchObject({
      ranks: ranks.map(({ rank }) => ({ rank })),
    });
    expect(await dry('-n', '2', '--map-by', 'numa')).toContain('ranks 0-1');
  });

  it('environment variables select hosts like the options', async () => {
    const environment = {
      NCCLRUN_HOSTFILE: 'hosts',
      NCCLRUN_INCLUDE: 'node01:0,2@node02',
      NCCLRUN_HOST: 'node01,node02',
    };
    const { stdout } = await Command.run(['--dry-run', 'true'], { directory, environment });
    expect(stdout).toMatch(/node01 .*0-1 .*\(0,2\)[\s\S]*node02 .*2-9/);
  });

  it('a job reads its hostfile from standard input or a pipe', async () => {
    await using command = Command.start(['--hostfile', '-', '-l', 'echo', 'here'], { directory, stdin: 'pipe' });
    command.process.stdin?.end('localhost slots=2\n');
    const { status, stdout } = await command.outcome;
    expect({ status, lines: stdout.split('\n').toSorted() }).toEqual({
      status: 0,
      lines: ['', '[0] here', '[1] here'],
    });
    await using several = Command.start(
      [
        '-f',
        '-',
        '--tag-output=none',
        '-H',
        '+n0',
        '-n',
        '1',
        'echo',
        'one',
        ':',
        '-H',
        'localhost',
        '-n',
        '1',
        'echo',
        'two',
      ],
      { directory, stdin: 'pipe' },
    );
    several.process.stdin?.end('localhost slots=2\n');
    const words = (await several.outcome).stdout.split('\n');
    expect(words.toSorted()).toEqual(['', 'one', 'two']);
    const shell = `exec ${join(repository, 'bin/ncclrun')} --hostfile <(echo localhost:1) echo here`;
    expect((await Command.run(['-c', shell], { program: 'bash', directory })).stdout).toBe('here\n');
  });
});

describe('--explain', () => {
  it('--explain shows the source of hosts and slots and starts nothing', async () => {
    const { stdout } = await succeeds('-f', 'hosts', '-H', 'node01:2,big', '-n', '4', '--explain', 'false');
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^command {2}ncclrun .*false$/),
      expect.stringMatching(/^host {5}node01 {3}ranks 0-1 {3}2 slots$/),
      expect.stringMatching(/^ +host: {2}hosts:1, one of node\[01-04\]; picked by -H$/),
      expect.stringMatching(/^ +slots: 2 of 8 by -H$/),
      expect.stringMatching(/^host {5}big {6}ranks 2-3 {3}16 slots$/),
      expect.stringMatching(/^ +host: {2}hosts:2; picked by -H$/),
      expect.stringMatching(/^ +slots: stated at hosts:2$/),
      expect.stringMatching(/^not used node03 +excluded at hosts:3$/),
      expect.stringMatching(/^not used node02 +-H does not name it$/),
      expect.stringMatching(/^not used node04 +-H does not name it$/),
      '',
    ]);
  });

  it('--explain works without a program', async () => {
    expect((await succeeds('-H', 'a:2,b', '--explain')).stdout).toMatch(
      /^a {3}2 slots.*-H\nb {3}a slot per GPU, else per core +-H$/m,
    );
    expect((await succeeds('--explain')).stdout).toContain('no hosts given: this machine');
  });

  it('the JSON of a dry run contains the explanation', async () => {
    const { stdout } = await succeeds('-f', 'hosts', '-H', 'big', '--explain', '--json', 'true');
    expect(JSON.parse(stdout)).toMatchObject({
      hosts: [{ name: 'big', origin: { host: 'hosts:2; picked by -H', text: 'stated at hosts:2' } }],
      leftOut: [{ name: 'node03' }, { name: 'node01' }, { name: 'node02' }, { name: 'node04' }],
    });
  });
});
