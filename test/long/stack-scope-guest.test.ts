/** `ncclrun stack` of an ordinary user under Yama's ptrace_scope, in a guest with Debian's kernel: this machine's may have no Yama. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseStackReport } from '../../launcher/jobs/stack-report.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { compile } from '../rig/compile.ts';
import { isDebian, runInGuest, softRoceUnavailable } from '../rig/soft-roce/guest.ts';

const directory = mkdtempSync(join(repository, 'build/test-stack-guest-'));
chmodSync(directory, 0o755);
afterAll(() => rmSync(directory, { recursive: true }));

/** What `ncclrun stack` prints of a job of an ordinary user under that ptrace_scope, after lines of whether the user may trace a rank. */
async function stacksUnder(scope: number, program: string): Promise<readonly string[]> {
  const script = `
    cd /
    echo ${scope} >/proc/sys/kernel/yama/ptrace_scope
    mkdir /tmp/home && chown 23456:23456 /tmp/home
    as_other='setpriv --reuid=23456 --regid=23456 --clear-groups env HOME=/tmp/home'
    $as_other ${repository}/bin/ncclrun -n 2 ${program} >/tmp/log 2>&1 &
    job=$!
    for rank in 0 1; do
      timeout 60 tail -n +1 -f /tmp/log | grep -q -m 1 "\\[$rank\\] ready" || { cat /tmp/log; exit 1; }
    done
    $as_other cat "/proc/$(pgrep -f -o '^${program}')/syscall" >/dev/null 2>&1; echo "traced $?"
    $as_other ${repository}/bin/ncclrun stack $job --json
    echo "status $?"
    kill $job; wait $job; true`;
  const { lines } = await runInGuest(script, join(directory, 'out'), 290);
  return lines;
}

describeIf(
  softRoceUnavailable(),
  'an ordinary user in a guest with Yama',
  () => {
    let program = '';
    beforeAll(async () => {
      program = await compile('test/rig/programs/call-tree.c', directory);
    });

    it('stack works through the guardian under ptrace_scope 1, where the user may not trace a rank', async () => {
      const lines = await stacksUnder(1, program);
      expect(lines[0]).toBe('traced 1');
      expect(lines.at(-1)).toBe('status 0');
      const { ranks } = parseStackReport(Buffer.from(lines.slice(1, -1).join('\n')));
      expect(ranks.map(({ problem }) => problem)).toEqual([null, null]);
      for (const { threads } of ranks) {
        const functions = threads[0]?.frames.map((frame) => frame.function);
        expect(functions).toEqual(expect.arrayContaining(['innermost', 'middle', 'outermost', 'main']));
      }
    });

    it('stack says why nobody but root reads a rank under ptrace_scope 2', async () => {
      const lines = await stacksUnder(2, program);
      expect(lines[0]).toBe('traced 1');
      const { ranks } = parseStackReport(Buffer.from(lines.slice(1, -1).join('\n')));
      expect(ranks).toHaveLength(2);
      for (const { problem } of ranks) expect(problem).toContain('kernel.yama.ptrace_scope is 2');
    });
  },
  !isDebian,
);
