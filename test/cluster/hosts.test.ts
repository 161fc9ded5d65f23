/** A job on several hosts: who runs where, what reaches them, how they talk. */
import { mkdtemp, rmdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

describeIf(clusterUnavailable(), 'a job on hosts reached by ssh', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3, { sshd: 'SetEnv site.name=there' });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('ranks fill the hosts in the given order and are numbered in that order', async () => {
    const script = 'echo $RANK $LOCAL_RANK $GROUP_RANK $(hostname)';
    const { status, stdout } = await Command.run(['-H', 'h2:2,h1:1', '--tag-output=none', 'sh', '-c', script], {
      cluster,
    });
    expect(status).toBe(0);
    expect(stdout.trim().split('\n').toSorted()).toEqual(['0 0 0 h2', '1 1 0 h2', '2 0 1 h1']);
  });

  it('a host list may contain the local host', async () => {
    const result = await Command.result(['-H', 'localhost:1,h1:1,h3:2', 'hostname'], { cluster });
    expect(result).toMatchObject({ ok: true, ranks: [{}, { host: 'h1' }, { host: 'h3' }, { host: 'h3' }] });
    expect(result.outcome.stderr.split('\n').toSorted()).toEqual(['', '[0] login', '[1] h1', '[2] h3', '[3] h3']);
  });

  it('the result contains a positive duration of each phase', async () => {
    const { phases } = await Command.result(['--rsh', 'ssh2', '-H', 'localhost:1,h1:1', 'true'], { cluster });
    expect(Object.entries(phases).filter(([, milliseconds]) => milliseconds <= 0)).toEqual([]);
  });

  it('arguments, -x and --wdir pass through ssh unchanged', async () => {
    const typed = ['a b', "it's", '$HOME', '*', '"', ';', '\\', 'ü', ''];
    const script = 'printf "%s\\0" "$PWD" "$GIVEN" "$@"';
    const options = ['-H', 'h1:1', '--wdir', `${repository}/test`, '-x', 'GIVEN=x $(y)'];
    const { stdout } = await Command.run([...options, 'sh', '-c', script, 'sh', ...typed], { cluster });
    expect(stdout.split('\0').slice(0, -1)).toEqual([`${repository}/test`, 'x $(y)', ...typed]);
  });

  it('functions of the shell and bytes that are no UTF-8 reach a host, and its own odd variables reach the ranks', async () => {
    const options = "--tag-output=none -H h1:1 -x 'BASH_FUNC_foo%%' -x GIVEN";
    const script = [
      'export GIVEN=$\'g\\xfe\'; foo() { printf \'%s\\n\' "$GIVEN" "$@"; env | grep ^site; }; export -f foo',
      `${repository}/bin/ncclrun ${options} bash -c 'foo "$@"' x $'a\\xff' | od -An -c -v`,
    ].join('\n');
    const { stdout, stderr } = await Command.run(['-c', script], { cluster, program: 'bash' });
    expect(stderr).toBe('');
    expect(stdout.replaceAll(/\s+/g, '')).toBe('g376\\na377\\nsite.name=there\\n');
  });

  it('hosts without the working directory are named in one line, and topo --host needs none', async () => {
    // Each host has a /tmp for itself.
    const directory = await mkdtemp('/tmp/only-here-');
    const { status, stderr } = await Command.run(['-H', 'h1:1,h2:1,h3:1', 'true'], { cluster, directory });
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(
        /^ncclrun: h\[1-3\]: there is no \S+only-here-\w+; the ranks run in \S+ \(--wdir names another directory\)\n$/u,
      ),
    });
    const topo = await Command.run(['topo', '--host', 'h1'], { cluster, directory });
    expect(topo.status).toBe(0);
    expect(topo.stderr).not.toContain('ranks run in');
    await rmdir(directory);
  });

  it('stdin reaches rank 0 and its output returns complete', async () => {
    const text = Array.from({ length: 200_000 }, (_, line) => `line ${line}\n`).join('');
    await using command = Command.start(['-H', 'h1:1', 'cat'], { cluster, stdin: 'pipe' });
    command.process.stdin?.end(text);
    const { status, stdout } = await command.outcome;
    expect({ status, same: stdout === text }).toEqual({ status: 0, same: true });
  });

  it('ranks of all hosts join one communicator', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-H', 'h1:2,h2:1,h3:1', ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(4);
    expect(await Promise.all(ranks.map((rank) => rank.init()))).toEqual([
      '0/4 0/2 h1,h2,h3',
      '1/4 1/2 h1,h2,h3',
      '2/4 0/1 h1,h2,h3',
      '3/4 0/1 h1,h2,h3',
    ]);
    const sums = await Promise.all(ranks.map((rank) => rank.allReduce(rank.rank, 1, 0.5)));
    expect(sums).toEqual([1, 2, 3, 4].map(() => [6, 4, 2]));
    const received = ranks[3]?.receive(0, 2);
    await ranks[0]?.tell({ do: 'send', to: 3, values: [7, 8] });
    expect(await received).toEqual([7, 8]);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'barrier' })));
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });

  it('ncclrun perf measures across hosts without a wrong element', async () => {
    const argv = ['perf', 'all_reduce', '-H', 'h1:2,h2:2', '-b', '8', '-e', '4M', '-f', '8', '--check', '--json'];
    const { status, stdout } = await Command.run(argv, { cluster });
    expect(status).toBe(0);
    const document: { ranks: number; hosts: number; rows: { wrong: number }[] } = JSON.parse(stdout);
    expect(document).toMatchObject({ ranks: 4, hosts: 2 });
    expect(document.rows.length).toBeGreaterThan(10);
    expect(document.rows.every((row) => row.wrong === 0)).toBe(true);
  });

  it('a finished job leaves neither processes nor files on any host', async () => {
    await Command.run(['-H', 'h1:4,h2:4,h3:4', '/bin/true'], { cluster });
    for (const host of cluster.hosts) await host.empty();
    const checkout = repository.startsWith('/tmp/') ? repository.split('/')[2] : '';
    for (const host of cluster.hosts) {
      const left = (await host.exec('ls', '/tmp')).split('\n').filter((name) => name !== checkout && name !== '');
      expect(left.join()).toMatch(/^(ncclrun-\d+)?$/);
    }
  });

  describe('two jobs on the same hosts', () => {
    it('two jobs on the same hosts do not disturb each other', async () => {
      await using first = await Steering.open();
      await using second = await Steering.open();
      await using one = Command.start(['-H', 'h1:1,h2:1', ...first.options, first.program], { cluster });
      await using two = Command.start(['-H', 'h1:1,h2:1', ...second.options, second.program], { cluster });
      const [firsts, seconds] = await Promise.all([first.ranks(2), second.ranks(2)]);
      await Promise.all([...firsts, ...seconds].map((rank) => rank.init()));
      await firsts[1]?.kill('SIGKILL');
      expect((await one.outcome).status).toBe(137);
      expect(await Promise.all(seconds.map((rank) => rank.allReduce(1)))).toEqual([[2], [2]]);
      for (const rank of seconds) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
      expect((await two.outcome).status).toBe(0);
    });
  });
});
