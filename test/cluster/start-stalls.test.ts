/** Agents that do not come up, and what keeps them: named in seconds, and nothing is left on either side. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { partsOn } from '../rig/faults.ts';
import { descendants } from '../rig/processes.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';

/** From the fault to the command's end, with both hosts' processes gone a moment later. */
const VERDICT_MS = 30_000;

const argv = (rsh: string): string[] => ['--json', '--rsh', rsh, '-H', 'h1:1,h2:1', '/bin/true'];

describeIf(clusterUnavailable(), 'an agent that does not come up', () => {
  let cluster: Cluster;
  let victim: ClusterHost;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    victim = cluster.host('h2');
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** The host's Node runs `program` instead of an agent until the returned function is called. */
  async function insteadOfAgent(program: string): Promise<() => Promise<unknown>> {
    const bundle = join(repository, 'dist/bundle/agent.cjs');
    const file = join(cluster.state, 'other-agent.cjs');
    writeFileSync(file, program);
    await victim.exec('mount', '--bind', file, bundle);
    return () => victim.exec('umount', bundle);
  }

  async function judged(command: Command): Promise<{ failure: unknown; stderr: string }> {
    const { status, stdout, stderr } = await command.endedWithin(VERDICT_MS);
    expect(status, stderr).toBe(125);
    for (const host of cluster.hosts) await host.empty(2000);
    await command.nothingLeft(2000);
    return { failure: parseResult(stdout).failures[0], stderr };
  }

  it.each([
    ['ssh2', 'process.kill(process.pid, "SIGSTOP")', /process \d+ was stopped for 5 s/],
    ['openssh', 'process.kill(process.pid, "SIGSTOP")', /process \d+ was stopped for 5 s/],
    ['ssh2', 'for (;;);', /used 3 s of processor time/],
    ['openssh', 'setTimeout(() => {}, 1e6)', /waited for 5 s/],
  ])('the host ends a stalled agent and the launcher reports why (%s, %s)', async (rsh, program, why) => {
    const restore = await insteadOfAgent(program);
    try {
      await using command = Command.start(argv(rsh), { cluster });
      const { failure } = await judged(command);
      expect(failure).toMatchObject({ type: 'agent', host: 'h2', phase: 'hello', message: expect.stringMatching(why) });
    } finally {
      await restore();
    }
  });

  it('the host ends a stopped agent when the launcher is killed and the cable is cut', async () => {
    const restore = await insteadOfAgent('process.kill(process.pid, "SIGSTOP")');
    try {
      await using command = Command.start(argv('ssh2'), { cluster });
      const [agent] = await until('the agent is there', () => {
        const found = partsOn(victim, 'agent');
        return found[0]?.state === 'T' ? found : null;
      });
      expect(agent?.state).toBe('T');
      await victim.cut();
      command.process.kill('SIGKILL');
      await command.outcome;
      await victim.empty(VERDICT_MS);
    } finally {
      await victim.uncut();
      await restore();
    }
  });

  it('the launcher names and ends a stopped ssh process of its own', async () => {
    const restore = await insteadOfAgent('setInterval(() => fs.readFileSync("/proc/self/stat"), 100)'); // always at work
    try {
      await using command = Command.start(argv('openssh'), { cluster });
      await until('the agent is there', () => partsOn(victim, 'agent').length > 0);
      const { pid } = await until('its ssh', () => {
        const ssh = descendants(command.pid).find(
          // With -G it says its configuration, and is gone.
          ({ argv: words }) => /(^|\/)ssh$/.test(words[0] ?? '') && words.includes('h2') && !words.includes('-G'),
        );
        return ssh ?? null;
      });
      process.kill(pid, 'SIGSTOP');
      const { failure } = await judged(command);
      expect(failure).toMatchObject({
        type: 'host-unreachable',
        host: 'h2',
        cause: 'shell',
        detail: expect.stringContaining(`process ${pid})`),
      });
    } finally {
      await restore();
    }
  });
});
