/** Sandboxes, old kernels and small limits: jobs run all the same where that is possible, else the call, the limit and the remedy are named. */
import { mkdtemp, rm } from 'node:fs/promises';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { compile, compileWithEngine } from '../rig/compile.ts';
import { noCompiler } from '../rig/gpu-programs.ts';

const notRoot =
  process.getuid?.() === 0 ? null : 'limits that a process does not lift itself need another user, and that needs root';
/** Nobody's in the password database. */
const USER = 45_680;

let directory = '';
let restrict = '';
let sum = '';
beforeAll(async () => {
  if (noCompiler !== null) return;
  directory = await mkdtemp(join(repository, 'build/test-restricted-'));
  chmodSync(directory, 0o755);
  restrict = await compile('test/rig/programs/restrict.c', directory);
  sum = await compileWithEngine('test/rig/programs/debug.c', directory);
}, 60_000);
afterAll(() => (directory === '' ? undefined : rm(directory, { recursive: true })));

/** ncclrun and all that it starts, without these calls, or within these limits. */
function run(restrictions: string, ...words: readonly string[]): Promise<Outcome> {
  const argv = [...restrictions.split(' '), '--', join(repository, 'bin/ncclrun'), ...words];
  return Command.run(argv, { program: restrict, environment: { NCCLRUN_DEVICE: 'host' } });
}

describeIf(noCompiler, 'a job under restrictions', () => {
  it.each([
    ['memfd_create=EPERM'],
    ['memfd_create=ENOSYS'],
    ['pidfd_open=EPERM'],
    ['pidfd_open=ENOSYS peerpidfd=ENOSYS'],
    ['signalfd=EPERM'],
    ['signalfd=ENOSYS pidfd_open=ENOSYS peerpidfd=ENOSYS memfd_create=ENOSYS close_range=ENOSYS'],
  ])('a job runs and ends with 0 under %s', async (refused) => {
    const { status, stderr } = await run(refused, '-n', '3', sum);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it.each([['pidfd_open=EPERM peerpidfd=ENOSYS'], ['signalfd=EPERM']])(
    "a job exits with the failing rank's exit status under %s",
    async (refused) => {
      const { status, stderr } = await run(refused, '-n', '2', 'sh', '-c', '[ $RANK = 0 ] && exit 3; sleep 600');
      expect(status).toBe(3);
      expect(stderr).toContain('rank 0 on localhost');
    },
  );

  it('the launcher names the killed rank under pidfd_open=EPERM', async () => {
    const script = '[ $RANK = 1 ] && kill -9 $$; sleep 600';
    const { status, stderr } = await run('pidfd_open=EPERM peerpidfd=ENOSYS', '-n', '2', 'sh', '-c', script);
    expect(status).toBe(137);
    expect(stderr).toMatch(/rank 1 on localhost .* died of SIGKILL/);
  });

  it('the launcher names the limit of open files and the command that raises it', async () => {
    const { status, stderr } = await run('open-files=22', '-n', '2', 'true');
    expect(status).toBe(125);
    expect(stderr).toMatch(/too many open files.*this process may open 22 files/i);
    expect(stderr).toMatch(/ulimit -n/);
    expect(stderr).not.toMatch(/internal error|defect/);
  });
});

describeIf(noCompiler ?? notRoot, 'a user with a process limit', () => {
  it('the launcher names the process limit of the user', async () => {
    const { status, stderr } = await run(`user=${USER} processes=8`, '-n', '2', 'true');
    expect(status).toBe(125);
    expect(stderr).toMatch(/this user may have 8 processes and threads; raise it with ulimit -u/);
    expect(stderr).not.toMatch(/internal error|defect|terminate called/);
  });
});
