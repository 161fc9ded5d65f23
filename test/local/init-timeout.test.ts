/** --init-timeout: ranks that wait for others which never join. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-init-timeout-'));
  program = await compileWithEngine('test/rig/programs/partial-init.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it('--init-timeout ends the job with 124 and names the rank that did not join', async () => {
  const result = await Command.result(['-n', '3', '--init-timeout', '0.7', program, 'job']);
  expect(result).toMatchObject({ ok: false, exitCode: 124, reason: 'init-timeout' });
  expect(result.failures).toMatchObject([
    { type: 'init-timeout', seconds: 0.7, missing: [expect.stringMatching(/^rank 2 \(\S+\)$/)] },
  ]);
  expect(result.outcome.stderr).toMatch(
    /^ncclrun: communicator [0-9a-f]{8} waited 0\.7 s for rank 2 \(\S+\), and the job was ended$/m,
  );
});

it('the failure contains the last stderr lines of the missing rank', async () => {
  const script = `if [ $RANK = 2 ]; then echo "out of licences" >&2; exec sleep 1000; fi; exec ${program} job`;
  const { failures, outcome } = await Command.result(['-n', '3', '--init-timeout', '0.7', 'sh', '-c', script]);
  expect(failures).toMatchObject([{ type: 'init-timeout', stderr: { rank: 2, tail: ['out of licences'] } }]);
  expect(outcome.stderr).toMatch(/out of licences\nncclrun: .* waited .* for rank 2/); // right above: not twice
  const buried = `if [ $RANK = 0 ]; then sleep 0.3; echo "hello" >&2; fi; ${script}`;
  const { stderr } = await Command.run(['-n', '3', '--init-timeout', '1.5', 'sh', '-c', buried]);
  expect(stderr).toMatch(
    / waited 1\.5 s for rank 2 .*\n {4}the end of rank 2’s stderr:\n {6}out of licences\n {2}next: /,
  );
});

it('NCCLRUN_INIT_TIMEOUT applies to every communicator', async () => {
  const environment = { NCCLRUN_INIT_TIMEOUT: '0.7' };
  const { exitCode, failures } = await Command.result(['-n', '3', program], { environment });
  expect({ exitCode, failures }).toMatchObject({
    exitCode: 124,
    failures: [{ type: 'init-timeout', seconds: 0.7, missing: ['rank 1'] }],
  });
});

it('--init-timeout does not affect a communicator whose ranks have joined', async () => {
  const text =
    'const { init } = await import("ncclrun"); const comm = await init(); await comm.barrier(); await comm.close();';
  const options = ['-n', '2', '--init-timeout', '30', process.execPath, '--input-type=module', '-e', text];
  expect(await Command.result(options)).toMatchObject({ ok: true, failures: [] });
});
