/** Whom a job blames when a rank leaves its communicator and the others fail for want of it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-blame-')); // within the package, so that 'ncclrun' is found
});
afterAll(() => rm(directory, { recursive: true }));

/** A program whose rank 1 does `act` after a first barrier, while the others reduce. */
async function program(name: string, action: string, declaration = 'const comm'): Promise<string> {
  const path = join(directory, `${name}.ts`);
  const text = `import { init } from 'ncclrun';
${declaration} = await init();
await comm.barrier();
if (comm.rank === 1) { ${action} }
await comm.allReduce(new Float32Array(1000));
`;
  await writeFile(path, text);
  return path;
}

it.each(['const comm', 'await using comm'])('the verdict names a rank that exited with 0 (%s)', async (how) => {
  const path = await program('exits', "process.stderr.write('enough for me\\n'); process.exit(0);", how);
  const { exitCode, reason, failures, outcome } = await Command.result(['-n', '3', path]);
  expect({ exitCode, reason, status: outcome.status }).toEqual({ exitCode: 125, reason: 'rank-missing', status: 125 });
  expect(failures[0]).toMatchObject({ type: 'rank-missing', rank: 1, stderrTail: ['enough for me'] });
  // 'ended' where the guardian's word comes late.
  expect(outcome.stderr).toMatch(
    /^ncclrun: rank 1 \(\S+, pid \d+\) (exited with status 0|ended) without leaving the communicator; others waited for it$/m,
  );
});

it('the verdict and the failures of the peers contain the reason of an abort', async () => {
  const path = await program(
    'aborts',
    "comm.abort('loss is NaN'); await new Promise((resolve) => setTimeout(resolve, 60_000));",
  );
  const { exitCode, failures, outcome } = await Command.result(['-n', '3', path]);
  expect(exitCode).toBe(125);
  expect(failures[0]).toMatchObject({ type: 'rank-missing', rank: 1 });
  expect(outcome.stderr).toMatch(/^ncclrun: rank 1 \(\S+, pid \d+\) aborted the communicator: loss is NaN$/m);
  expect(outcome.stderr).toMatch(/NcclError: .*rank 1 .*loss is NaN/);
});

it('the job exits with the exit status of a rank that aborted and exited', async () => {
  const path = await program(
    'aborts-and-exits',
    "process.on('SIGTERM', () => {}); comm.abort('enough'); process.exit(7);",
  );
  const { exitCode, failures } = await Command.result(['-n', '3', path]);
  expect({ exitCode, failures: [failures[0]] }).toMatchObject({ exitCode: 7, failures: [{ rank: 1 }] });
});

it('the launcher waits for the exit status of a rank that aborted and exits shortly after', async () => {
  const path = await program(
    'aborts-and-exits-later',
    "comm.abort('enough'); setTimeout(() => process.exit(7), 60); await new Promise(() => {});",
  );
  const { exitCode, failures } = await Command.result(['-n', '3', path]);
  expect({ exitCode, failures: [failures[0]] }).toMatchObject({ exitCode: 7, failures: [{ rank: 1 }] });
});

it('the job ends with status 0 when the other ranks handle an abort', async () => {
  const path = join(directory, 'copes.ts');
  const text = `import { init } from 'ncclrun';
const comm = await init();
if (comm.rank === 1) {
  await comm.barrier();
  comm.abort('enough');
} else await comm.barrier().then(() => comm.allReduce(new Float32Array(1000))).catch(() => undefined);
await comm.close();
`;
  await writeFile(path, text);
  expect(await Command.result(['-n', '3', path])).toMatchObject({ ok: true, exitCode: 0, failures: [] });
});
