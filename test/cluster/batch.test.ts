/** Batches on several hosts: who runs where, and what becomes of the tasks of a host that is lost. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { BatchRig, LEDGER } from '../rig/batch.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { until } from '../rig/until.ts';

describeIf(clusterUnavailable(), 'a batch on several hosts', () => {
  let cluster: Cluster;
  let rig: BatchRig;
  beforeEach(async () => {
    cluster = await Cluster.start(3);
    rig = await BatchRig.openShared();
  });
  afterEach(async () => {
    await cluster[Symbol.asyncDispose]();
    await rig[Symbol.asyncDispose]();
  });
  const file = (...jobs: readonly string[]) =>
    rig.file(
      [
        'version: 1',
        'name: test',
        `defaults: { working_dir: ${rig.directory}, env_from: [LEDGER] }`,
        'jobs:',
        ...jobs,
      ].join('\n'),
    );
  const options = () => ({
    cluster,
    environment: { XDG_STATE_HOME: rig.directory, LEDGER: join(rig.directory, 'ledger') },
  });
  const say = `${LEDGER}; hostname`;

  it('runs tasks on as many hosts as they ask for, side by side, and each on slots of its own', async () => {
    const path = file(
      `  - { name: wide, command: '${say}', nodes: 3, ntasks_per_node: 1 }`,
      `  - { name: pair, command: '${say}', ntasks: 2, nodes: 1, array: 0-3 }`,
      `  - { name: on2, command: '${say}', hosts: h2 }`,
    );
    const { status, stdout } = await Command.run(['batch', path, '-H', 'h1:2,h2:2,h3:2'], options());
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('6 tasks: 6 succeeded') });
    const { stdout: json } = await Command.run(['jobs', 'test-1', '--json'], options());
    const { tasks } = JSON.parse(json);
    const hostsOf = (name: string) => tasks.find((task: { name: string }) => task.name === name).hosts;
    expect(hostsOf('wide').map(({ name }: { name: string }) => name)).toEqual(['h1', 'h2', 'h3']);
    expect(hostsOf('on2')).toEqual([{ name: 'h2', ranks: 1 }]);
    expect(hostsOf('pair[0]')).toHaveLength(1);
  });

  /** Says which process its agent is, as the host sees it: the parent of guardian and warden. */
  const sayAgent = [
    'p=$PPID',
    'for up in 1 2; do while read -r key value; do [ "$key" = PPid: ] && next=$value; done < /proc/$p/status; p=$next; done',
    'echo "$NCCLRUN_TASK $p" >> "$LEDGER"',
  ].join('\n');
  const agentOf = (task: string): string =>
    rig
      .ledger()
      .find((line) => line.startsWith(`${task} `))
      ?.split(' ')[1] ?? '';

  it('keeps the agents of a host for its next task, replaces one that is lost, and leaves none', async () => {
    const script = join(rig.directory, 'say-agent.sh');
    writeFileSync(script, sayAgent);
    const job = (name: string, host: string, more = '') =>
      `  - { name: ${name}, command: [sh, ${script}], hosts: ${host}${more} }`;
    const path = file(
      job('a', 'h1'),
      job('b', 'h1', ', after: a'),
      job('c', 'h1', ', hold: true'),
      `  - { name: last, command: 'until test -e ${rig.directory}/go; do sleep 0.05; done', hosts: h2 }`,
    );
    await using batch = Command.start(['batch', path, '-H', 'h1:1,h2:1'], options());
    await batch.line('stderr', /b succeeded/u);
    expect(Number(agentOf('a'))).toBeGreaterThan(1);
    expect(agentOf('b')).toBe(agentOf('a'));
    await cluster.host('h1').exec('kill', '-9', agentOf('b'));
    await Command.run(['release', 'test-1/c'], options());
    await batch.line('stderr', /c succeeded/u);
    expect(['', agentOf('a')]).not.toContain(agentOf('c'));
    writeFileSync(join(rig.directory, 'go'), '');
    const { status, stderr } = await batch.outcome;
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringContaining('attempt') });
    for (const name of ['h1', 'h2']) await cluster.host(name).empty();
  });

  it('runs a task whose host is lost again on another one', async () => {
    const path = file(
      `  - { name: a, command: '${LEDGER}; until test -e ${rig.directory}/go; do sleep 0.05; done', ntasks: 2, retry: { delay: 1s } }`,
    );
    await using batch = Command.start(['batch', path, '-H', 'h1:2,h2:2'], options());
    await until('the task runs', () => rig.ledger().length === 2);
    await cluster.host('h1').powerloss();
    await batch.line('stderr', /a: attempt 1 failed: .*h1/u);
    writeFileSync(join(rig.directory, 'go'), '');
    const { status, stderr } = await batch.outcome;
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringMatching(/a runs on h2:2 \(attempt 2\)/u) });
  });
});
