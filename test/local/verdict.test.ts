/** What people and scripts are told of the rank that decided the job: its last words, who killed it, and whom we ended for it. */
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Failure } from '../../launcher/model/failure.ts';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

const wordsOf = (failure: Failure | undefined): readonly string[] =>
  failure !== undefined && 'stderrTail' in failure ? failure.stderrTail : [];

describe('the last stderr lines of the failed rank', () => {
  it('the verdict repeats the lines when output of other ranks followed them', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '3', ...steering.options, steering.program]);
    const [first, second] = await steering.ranks(3);
    await second?.print('Traceback\nValueError: seven\n', 'stderr');
    await command.line('stderr', /seven/);
    await first?.print('something else\n', 'stderr');
    await command.line('stderr', /something else/);
    await second?.exit(3);
    const { stderr } = await command.outcome;
    expect(stderr).toMatch(
      /rank 1 on .* exited with status 3\n {4}the end of its stderr:\n {6}Traceback\n {6}ValueError: seven\n/,
    );
    expect(stderr).toContain('2 other ranks were ended because of it: 0,2');
  });

  it('the verdict does not repeat lines that stand directly above', async () => {
    const { stderr } = await Command.run(['-n', '1', 'sh', '-c', 'echo alas >&2; exit 3']);
    expect(stderr).toMatch(/^alas\nncclrun: rank 0 on .* exited with status 3\n {2}next: /);
  });

  it('the launcher repeats verdict and lines at the end when later output buried them', async () => {
    const script =
      'if [ $RANK = 1 ]; then echo alas >&2; exit 3; fi; trap "seq 100 >&2; exit 1" TERM; while :; do sleep 0.01; done';
    const { stderr } = await Command.run(['-n', '3', 'sh', '-c', script]);
    const [, after = ''] = stderr.split('[0] 100\n');
    expect(after).toMatch(/rank 1 on .* exited with status 3\n {4}the end of its stderr:\n {6}alas\n/);
  });

  it('the result contains at most ten lines as plain text', async () => {
    const script = String.raw`seq 1000 >&2; printf "10%%\r100%%\n\033[31mred\033[0m\n\n" >&2; kill -SEGV $$`;
    const { failures, outcome } = await Command.result(['-n', '1', 'sh', '-c', script]);
    expect(outcome.status).toBe(139);
    expect(wordsOf(failures[0])).toEqual(['993', '994', '995', '996', '997', '998', '999', '1000', '100%', 'red']);
  });

  it('the result contains no lines for a rank without stderr output', async () => {
    const { failures } = await Command.result(['-n', '1', 'sh', '-c', 'echo out; exit 1']);
    expect(wordsOf(failures[0])).toEqual([]);
  });
});

const group = `/sys/fs/cgroup/memory/ncclrun-test-${process.pid}`;

function memoryGroupUnavailable(): string | null {
  try {
    mkdirSync(group);
    writeFileSync(`${group}/memory.limit_in_bytes`, String(256 * 1024 * 1024));
    return null;
  } catch (error) {
    return `no memory control group can be made: ${String(error)}`;
  }
}

describeIf(memoryGroupUnavailable(), 'a rank that the OOM killer ended', () => {
  afterAll(() => rmdirSync(group));

  it.each([
    ['rank-signal', 'died of SIGKILL (killed), status 137', 'exec tail -n 1 /dev/zero'],
    ['rank-exit', 'exited with status 137', 'tail -n 1 /dev/zero; exit $?'],
  ])('the failure %s states that memory ran out', async (reason, end, program) => {
    const hog = `if [ $RANK = 1 ]; then ${program}; else sleep 1000; fi`;
    const inGroup = `echo $$ > ${group}/cgroup.procs; exec bin/ncclrun --json -n 2 sh -c "$0"`;
    await using command = Command.start(['-c', inGroup, `exec sh -c '${hog}'`], { program: 'bash' });
    const { status, stdout, stderr } = await command.outcome;
    expect(status).toBe(137);
    expect(JSON.parse(stdout)).toMatchObject({
      reason,
      failures: [{ rank: 1, outOfMemory: true }],
    });
    expect(stderr).toContain(`${end}: the kernel ended it because memory ran out`);
  });
});
