/** One attempt of a task inside its allocation: what it writes, and whether it asks Slurm for another one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { recordsIn } from '../../launcher/batch/attempt/records.ts';
import { runInSlurm } from '../../launcher/batch/slurm/attempt/run-in-slurm.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';

let results: string;
beforeEach(() => {
  results = mkdtempSync(join(tmpdir(), 'ncclrun-slurm-attempt-'));
});
afterEach(() => rmSync(results, { recursive: true }));

interface Attempted {
  readonly status: number | null;
  readonly requeued: number;
  readonly said: readonly string[];
  readonly argv: readonly string[];
}

/** `failures`: of the job; a FailureError is thrown in place of a result. */
async function attempted(
  attempt: number,
  failures: readonly Failure[] | FailureError,
  retry: Partial<{ errors: number; interruptions: number; unlessExit: number[] }> = {},
): Promise<Attempted> {
  let requeued = 0;
  const said: string[] = [];
  const argvs: (readonly string[])[] = [];
  const run = async (argv: readonly string[]): Promise<number> => {
    argvs.push(argv);
    if (failures instanceof FailureError) throw failures;
    const [first] = failures;
    const exitCode = first === undefined ? 0 : 'exitCode' in first ? first.exitCode : 143;
    const reason = first?.type ?? 'ok';
    writeFileSync(argv[1] ?? '', JSON.stringify({ ok: failures.length === 0, exitCode, reason, failures, hosts: [] }));
    return exitCode;
  };
  const policy = {
    results,
    before: 0,
    retry: { errors: 0, interruptions: 1, unlessExit: [], onOutOfMemory: false, ...retry },
  };
  const requeue = async (): Promise<void> => void (requeued += 1);
  const say = async (text: string): Promise<void> => void said.push(text);
  const status = await runInSlurm({ policy, task: 5, attempt, words: ['-n', '1', '--', 'x'], run, requeue, say }).catch(
    () => null,
  );
  return { status, requeued, said, argv: argvs[0] ?? [] };
}

const exited: Failure = {
  type: 'rank-exit',
  rank: 0,
  host: 'h1',
  pid: 1,
  exitCode: 3,
  outOfMemory: false,
  stderrTail: [],
};
const interrupted: Failure = { type: 'interrupt', signal: 'SIGTERM' };
const unreachable = new FailureError({ type: 'system', message: 'no room', remedy: null });

it('an attempt writes its report and its end into a directory of its own', async () => {
  const { status, requeued, argv } = await attempted(1, []);
  expect({ status, requeued, argv }).toEqual({
    status: 0,
    requeued: 0,
    argv: ['--report', join(results, '5.1/report.json'), '-n', '1', '--', 'x'],
  });
  expect(recordsIn(results, 5, 1).end()).toMatchObject({ outcome: 'success', exitCode: 0 });
});

it('an attempt runs once, however often Slurm starts its script', async () => {
  await attempted(1, []);
  const second = await attempted(1, []);
  expect(second).toMatchObject({
    status: 125,
    argv: [],
    said: [expect.stringContaining('another process runs attempt 1')],
  });
});

it('Slurm queues a task again as often as it may fail', async () => {
  const first = await attempted(1, [exited], { errors: 1 });
  const second = await attempted(2, [exited], { errors: 1 });
  expect([first.requeued, second.requeued]).toEqual([1, 0]);
});

it('a status of unless_exit is the last one', async () => {
  expect(await attempted(1, [exited], { errors: 5, unlessExit: [3] })).toMatchObject({ status: 3, requeued: 0 });
});

it('a launcher that cannot go on counts as an interruption', async () => {
  expect(await attempted(1, unreachable)).toMatchObject({ status: null, requeued: 1 });
  expect(await attempted(2, unreachable)).toMatchObject({ requeued: 0 });
});

it('a job that scancel or the time limit of Slurm has ended is not queued again', async () => {
  expect(await attempted(1, [interrupted], { errors: 5 })).toMatchObject({ status: 143, requeued: 0 });
});

it('a task is given up whose attempts Slurm has interrupted too often', async () => {
  const third = await attempted(3, []);
  expect(third).toMatchObject({
    status: 1,
    argv: [],
    said: [expect.stringContaining('2 of its attempts were interrupted')],
  });
  expect(recordsIn(results, 5, 3).end()).toMatchObject({ outcome: 'interruption' });
});
