/** How hosts are reached that an agent cannot reach, and which of the launcher's shells knows whether another attempt may succeed. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TreeShell } from '../../launcher/remote/tree/tree-shell.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { PlayedTree, terms } from '../rig/played-tree.ts';

const names = Array.from({ length: 7 }, (_, index) => `h${index + 1}`);

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'setImmediate', 'hrtime', 'performance'],
    }),
);
afterEach(() => vi.useRealTimers());

async function started(unreached: readonly string[]) {
  const tree = new PlayedTree(names, 2, unreached);
  await vi.advanceTimersByTimeAsync(3 * terms.heartbeatMs);
  const toldOf = (name: string) => tree.hosts.get(name)?.told ?? [];
  return { tree, toldOf };
}

describe('a host that other hosts start', () => {
  test('each step names the host that reaches it', async () => {
    const { tree, toldOf } = await started([]);
    expect([...tree.agents.keys()].toSorted()).toEqual(names);
    expect(names.map((name) => toldOf(name).find((step) => step.startsWith('through')))).toEqual([
      undefined,
      undefined,
      'through h1',
      'through h2',
      'through h1',
      'through h2',
      'through h3',
    ]);
  });

  test('the launcher reaches the hosts by itself that none of them reaches', async () => {
    const { tree, toldOf } = await started(names);
    expect([...tree.agents.keys()].toSorted()).toEqual(names);
    expect(toldOf('h3')).toContain('reached from here, since h1 could not reach it: No route to host');
    expect(toldOf('h7').filter((step) => step.startsWith('through'))).toEqual([]);
    expect([...tree.hosts.values()].map(({ closed }) => closed)).toEqual(names.map(() => undefined));
  });

  test('one that cannot be reached so is reached directly, and the others are not', async () => {
    const { tree, toldOf } = await started(['h5']);
    expect([...tree.agents.keys()].toSorted()).toEqual(names);
    expect(toldOf('h5').filter((step) => step.startsWith('reached'))).toEqual([
      'reached from here, since h1 could not reach it: No route to host',
    ]);
    expect(toldOf('h4')).toContain('through h2');
  });
});

const problem = (transient: boolean) => ({ cause: 'other' as const, detail: '', remedy: null, transient });

test('a problem of the connection says whether another attempt may succeed, else the shell does', () => {
  const shell = new TreeShell(
    {
      start: () => expect.unreachable(),
      commandLine: () => [],
      trial: ({ name }, verbose) => `try ${name} ${verbose}`,
      isTransient: ({ status }) => status === 255,
    },
    [hostNamed('a')],
    2,
  );
  expect(shell.isTransient({ status: 255, stderr: '' })).toBe(true);
  expect(shell.isTransient({ status: 1, stderr: '' })).toBe(false);
  expect(shell.isTransient({ status: 255, stderr: '', problem: problem(false) })).toBe(false);
  expect(shell.isTransient({ status: 1, stderr: '', problem: problem(true) })).toBe(true);
  expect(shell.trial(hostNamed('a'), true)).toBe('try a true');
});
