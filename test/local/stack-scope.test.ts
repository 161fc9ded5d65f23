/** `ncclrun stack` of an ordinary user: the guardian is an ancestor of the ranks, which is all that Yama's ptrace_scope 1 asks for. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parseStackReport } from '../../launcher/jobs/stack-report.ts';
import { describeIf, otherUsersUnavailable } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile } from '../rig/compile.ts';

const launcher = join(repository, 'bin/ncclrun');
const directory = mkdtempSync(join(tmpdir(), 'ncclrun-scope-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Words before a command of that user. */
const asOther = ['--reuid=23456', '--regid=23456', '--clear-groups', 'env', 'HOME=/nonexistent'];

/** Null, or the sentence why nobody but ancestors is refused here. */
function scopeUnavailable(): string | null {
  try {
    const scope = readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'latin1').trim();
    return scope === '1' ? otherUsersUnavailable(launcher) : `ptrace_scope is ${scope}, not 1`;
  } catch {
    return 'this kernel has no Yama (/proc/sys/kernel/yama)';
  }
}

/** A job of that user, and what its stacks are for the same user; `meanwhile`: with the process of a rank. */
async function stacksOfOther(meanwhile: (pid: number) => Promise<void> = async () => undefined) {
  await chmod(directory, 0o755);
  const program = await compile('test/rig/programs/call-tree.c', directory);
  const other = { program: 'setpriv', directory: '/' };
  await using command = Command.start([...asOther, launcher, '-n', '2', program], other);
  for (const rank of [0, 1]) await command.line('stdout', new RegExp(`\\[${rank}\\] ready`));
  const argv = [...asOther, launcher, 'stack', String(command.pid), '--json'];
  const { status, stdout, stderr } = await Command.run(argv, other);
  const { ranks } = parseStackReport(Buffer.from(stdout));
  const [first] = ranks;
  if (first?.pid !== undefined && first.pid !== null) await meanwhile(first.pid);
  const functions = ranks.map(({ threads }) => threads[0]?.frames.map((frame) => frame.function));
  return { status, stderr, problems: ranks.map(({ problem }) => problem), functions };
}

const tree = expect.arrayContaining(['innermost', 'middle', 'outermost', 'main']);
const read = { status: 0, stderr: '', problems: [null, null], functions: [tree, tree] };

describeIf(otherUsersUnavailable(launcher), 'an ordinary user', () => {
  it('stack reads the ranks of the job of a user who is not root', async () => {
    expect(await stacksOfOther()).toEqual(read);
  });
});

/** A kernel cannot be given Yama. */
const isOptional = true;
const scoped = (): void => {
  it('stack works through the guardian, though the same user may not trace a rank from elsewhere', async () => {
    const found = await stacksOfOther(async (pid) => {
      const tracer = spawn('setpriv', [...asOther, 'cat', `/proc/${pid}/syscall`], { stdio: 'ignore' });
      const [code] = await once(tracer, 'exit');
      expect(code).not.toBe(0);
    });
    expect(found).toEqual(read);
  });
};
describeIf(scopeUnavailable(), 'an ordinary user where ptrace_scope is 1', scoped, isOptional);
