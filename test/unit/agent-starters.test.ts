/** What starts agents on other hosts: srun, ssh or a command, and in which order where agents start others. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CommandShell, runShell } from '../../launcher/remote/command-shell.ts';
import { remoteAgentStarter } from '../../launcher/remote/remote-agent.ts';
import type { AgentConnection } from '../../launcher/remote/shell/connection.ts';
import type { HostSlots } from '../../launcher/model/types.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { scriptedJob } from '../rig/scripted-host.ts';
import { until } from '../rig/until.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-starters-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes down how it was called, and fails. */
const program = `#!/bin/sh
printf '%s' "\${0##*/} $*" | tr '\\n' ' ' >>"$NCCLRUN_TEST_CALLS"
echo >>"$NCCLRUN_TEST_CALLS"
exit 1
`;
for (const name of ['srun', 'ssh', 'other']) writeFileSync(join(root, name), program, { mode: 0o755 });

let calls = '';
const open: AgentConnection[] = [];
beforeEach(() => {
  calls = join(mkdtempSync(join(root, 'calls-')), 'calls');
  vi.stubEnv('NCCLRUN_TEST_CALLS', calls);
  vi.stubEnv('PATH', `${root}:${process.env['PATH']}`);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close(true)));
  vi.unstubAllEnvs();
});

/** Without those that ask ssh for its configuration. */
const starts = (): string[] =>
  existsSync(calls)
    ? readFileSync(calls, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.includes(' -G '))
    : [];

async function starter(rsh: string, hosts: readonly HostSlots[], more: { stage?: boolean; radix?: number } = {}) {
  const order = scriptedJob(['a'], 1).agents[0]?.order ?? expect.unreachable();
  const start = await remoteAgentStarter({ rsh, stage: false, radix: 0, portRange: null, ...more }, hosts, []);
  return (host: HostSlots) => {
    const closed = new Promise<string>((resolve) => {
      const connection = start(host, order, {
        frame: () => undefined,
        staging: () => undefined,
        remoteShell: () => undefined,
        step: () => undefined,
        closed: ({ failure }) => resolve(failure === null ? '' : failure.type),
      });
      open.push(connection);
    });
    return closed;
  };
}

const [a, b, c] = [hostNamed('a'), hostNamed('b'), hostNamed('c')];
const allocated = (name: string) => hostNamed(name, { manager: 'slurm' });

describe('agents on other hosts', () => {
  test('srun starts them where all hosts are of a Slurm job, and nobody says otherwise', async () => {
    const [one, other] = [allocated('a'), allocated('b')];
    const start = await starter('auto', [one, other]);
    void start(one);
    void start(other);
    await until('srun was called', () => starts().length === 1);
    expect(starts()[0]).toMatch(/^srun .*--nodelist=a,b /u);
  });

  test.each<[string, string, HostSlots[]]>([
    ['the user wants ssh', 'openssh', [allocated('a')]],
    ['the command is an ssh', join(root, 'ssh'), [a]],
  ])('ssh starts them where %s', async (_, rsh, hosts) => {
    const start = await starter(rsh, hosts);
    expect(await Promise.all(hosts.map(start))).toEqual(['host-unreachable']);
    expect(starts()).toHaveLength(1);
    expect(starts()[0]).toMatch(/^ssh -T -x -a .* -- a exec sh -c /u);
  });

  test('a command gets the host and what to run', async () => {
    const start = await starter(`${join(root, 'other')}  -q`, [a]);
    await start(hostNamed('a', { user: 'me' }));
    expect(starts()[0]).toMatch(/^other -q me@a exec sh -c /u);
  });

  test('the third host waits for the first where each starts two others', async () => {
    const start = await starter('openssh', [a, b, c], { radix: 2 });
    const third = start(c);
    await Promise.all([start(a), third]);
    expect(starts().map((line) => / -- (\w) /u.exec(line)?.[1])).toEqual(['a', 'c']);
  });

  test.each([0, 3])('no host waits for another with the radix %i', async (radix) => {
    const start = await starter('openssh', [a, b, c], { radix });
    await start(c);
    expect(starts().map((line) => / -- (\w) /u.exec(line)?.[1])).toEqual(['c']);
  });
});

test('a command cannot be told a port, and tells what to try', async () => {
  const shell = new CommandShell(['rsh', '-q']);
  await expect(shell.start(hostNamed('a', { port: 23 }), 'true')).rejects.toThrow('rsh -q cannot be told the port 23');
  expect(shell.trial(hostNamed('a', { user: 'me' }))).toBe('rsh -q me@a true');
  expect(shell.isTransient({ status: 1, stderr: 'Connection reset by peer' })).toBe(true);
  expect(shell.isTransient({ status: 1, stderr: 'no such host' })).toBe(false);
});

test('a remote shell that is let go ends in order, and one of a lost host is killed at once', async () => {
  const words = ['sh', '-c', 'cat >/dev/null; exit 7'];
  const [inOrder, lost] = [runShell(words), runShell(words)];
  inOrder.letGo(false);
  lost.letGo(true);
  expect(await Promise.all([inOrder.exit, lost.exit])).toEqual([
    { status: 7, stderr: '' },
    { status: null, stderr: '' },
  ]);
});
