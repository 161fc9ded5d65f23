/** A scheduler that is stopped for a while, and one whose clock is set while its tasks run: no task is lost, none runs twice. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BatchRig, LEDGER } from '../rig/batch.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { until } from '../rig/until.ts';

/** Task a waits for the file `go`, b for a; c fails the first time that it runs. */
const FILE = `version: 1
name: disturbed
defaults: { output: "%x.%r.out", working_dir: DIRECTORY }
jobs:
  - { name: a, command: '${LEDGER}; until [ -e go ]; do sleep 0.05; done' }
  - { name: b, command: '${LEDGER}', after: a }
  - { name: c, command: '${LEDGER}; ! mkdir failed', retry: { max_retries: 1, delay: 1s } }
`;
const LEFT = ['a 1', 'b 1', 'c 1', 'c 2'];

function fileOf(rig: BatchRig): string {
  return rig.file(FILE.replaceAll('DIRECTORY', rig.directory));
}

/** Files of that name below the state directory. */
function recordsOf(rig: BatchRig, name: string): number {
  return readdirSync(rig.directory, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith(`/${name}`))
    .length;
}

it('a scheduler that was stopped while its tasks ended goes on where it was', async () => {
  await using rig = await BatchRig.open();
  await using scheduler = Command.start(['batch', fileOf(rig)], {
    environment: rig.environment,
    directory: rig.directory,
  });
  await until('a and c have begun', () => rig.ledger().includes('a 1') && rig.ledger().includes('c 1'));
  scheduler.signal('SIGSTOP');
  await using jobs = Command.start(['jobs'], { environment: rig.environment, directory: rig.directory });
  expect(await jobs.outcome).toMatchObject({
    stderr: expect.stringMatching(/the scheduler of the batch \(process \d+\) does not answer: it is stopped/),
  });
  writeFileSync(join(rig.directory, 'go'), '');
  await until('the launchers of a and c have ended', () => recordsOf(rig, 'end.json') >= 2, 30_000, 50);
  scheduler.signal('SIGCONT');
  expect((await scheduler.outcome).status).toBe(0);
  expect(rig.ledger()).toEqual(LEFT);
});

describeIf(noCompiler, 'a scheduler whose clock is set', () => {
  it.each([-3600, 3600])('runs each task once, and retries soon, after a jump by %d s', async (ahead) => {
    await using rig = await BatchRig.open();
    const [library, clock] = [join(rig.directory, 'jumping-clock.so'), join(rig.directory, 'clock')];
    const source = join(repository, 'test/rig/programs/jumping-clock.c');
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
    const environment = { ...rig.environment, LD_PRELOAD: library, CLOCK_AHEAD: clock, CLOCK_WORD: 'batch' };
    // bin/ncclrun lets nobody preload a library; its Node takes it.
    const argv = [join(repository, 'dist/bundle/main.cjs'), 'batch', fileOf(rig)];
    await using scheduler = Command.start(argv, { program: process.execPath, environment, directory: rig.directory });
    await until('a and c have begun', () => rig.ledger().includes('a 1') && existsSync(join(rig.directory, 'failed')));
    writeFileSync(clock, String(ahead));
    writeFileSync(join(rig.directory, 'go'), '');
    const { status, stderr } = await scheduler.outcome;
    expect({ status, ledger: rig.ledger() }).toEqual({ status: 0, ledger: LEFT });
    expect(stderr).not.toMatch(/again in \d+ (?:min|h)/u);
  });
});
