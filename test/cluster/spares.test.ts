/** Hosts beyond those that a job needs take the place of hosts that were lost, or whose ranks fail again and again. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { signalFound } from '../rig/processes.ts';

const up = 'echo up $RANK $(hostname) $TORCHELASTIC_RESTART_COUNT';
const third = ['-H', 'h1:1,h2:1,h3:1', '-n', '2', '--max-restarts', '2', '-v', 'sh', '-c'];

describeIf(clusterUnavailable(), 'spares', () => {
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await Cluster.start(3);
  });
  afterEach(() => cluster[Symbol.asyncDispose]());

  const clean = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) await cluster.host(name).empty(5000);
  };

  it('a spare replaces a host that dies, and the other rank keeps its host', async () => {
    await using command = Command.start([...third, `${up}; exec sleep 1000`], { cluster });
    await command.line('stdout', /^\[1\] up 1 h2 0/);
    await command.line('stderr', /h3: up/);
    await cluster.host('h2').kill();
    await command.line('stderr', /h3 takes the place of h2$/);
    await command.line('stdout', /^\[0\] up 0 h1 1/);
    await command.line('stdout', /^\[1\] up 1 h3 1/);
    const { stdout } = await Command.run(['ps'], { cluster });
    expect(stdout).toMatch(/^ {2}h1 {3}rank 0\n {2}h3 {3}rank 1$/m);
    command.signal('SIGTERM');
    expect((await command.outcome).status).toBe(143);
    await clean('h1', 'h3');
  });

  it('a spare replaces a host that is unreachable at the start', async () => {
    await cluster.host('h1').kill();
    const { status, stdout, stderr } = await Command.run([...third, up], { cluster });
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('h3 takes the place of h1\n') });
    expect(stdout.split('\n').toSorted()).toEqual(['', '[0] up 0 h3 1', '[1] up 1 h2 1']);
    await clean('h2', 'h3');
  });

  it('a spare replaces a host whose ranks failed twice', async () => {
    const script = `${up}; [ $(hostname) != h2 ] || exit 7`;
    const { status, stdout, stderr } = await Command.run([...third, script], { cluster });
    const sentence = 'h3 takes the place of h2, whose ranks have failed 2 times\n';
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining(sentence) });
    expect(stdout).toContain('[1] up 1 h2 1');
    expect(stdout).toContain('[1] up 1 h3 2');
    await clean('h1', 'h2', 'h3');
  });

  it('the loss of a spare does not fail the job, and no rank moves to it', async () => {
    const script = `${up}; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000`;
    await using command = Command.start([...third, script], { cluster });
    await command.line('stderr', /h3: up/);
    await cluster.host('h3').kill();
    await command.line('stderr', /h3, a spare, is lost/);
    const rank = cluster
      .host('h2')
      .guests()
      .find(({ argv }) => argv[0] === 'sleep');
    signalFound(rank, 'SIGKILL');
    const { status, stdout } = await command.outcome;
    expect({ status, again: stdout.includes('[1] up 1 h2 1') }).toEqual({ status: 0, again: true });
    await clean('h1', 'h2');
  });
});
