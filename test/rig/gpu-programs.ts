/** The programs of test/gpu/native, which start their ranks themselves. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import { repository } from './cluster.ts';
import { Command } from './command.ts';
import { withoutDifferences } from './differences.ts';
import { sampleSize } from './whole.ts';

const execFileAsync = promisify(execFile);

/** Up to so many bytes have the operations that `graphs` captures: the stand-in's processors compute them. */
export const GRAPH_BYTES = sampleSize(262_144, 65_536);

/** null: they can be compiled. */
export const noCompiler = spawnSync('cc', ['--version']).error === undefined ? null : 'there is no cc';

export interface GpuPrograms {
  /** A program by its name and arguments: what it says. Throws where it fails. */
  readonly run: (line: string, environment: NodeJS.ProcessEnv) => Promise<{ stdout: string; stderr: string }>;
  /** Its last line is `says`, and nothing stands on stderr. */
  readonly expectLast: (line: string, says: string, environment: NodeJS.ProcessEnv) => Promise<void>;
  /** The same of a job with the ranks of its first argument on so many hosts, each of which says it. */
  readonly expectOnHosts: (hosts: number, line: string, says: string, environment: NodeJS.ProcessEnv) => Promise<void>;
}

/** Programs whose calls differ on purpose, which the launcher says, too. */
const DIFFER: ReadonlySet<string> = new Set(['slots', 'calls']);

/** Compiles them before the tests of the suite that calls this, and removes them afterwards. */
export function gpuPrograms(): GpuPrograms {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-gpu-programs-'));
    await execFileAsync(join(repository, 'test/gpu/native/build.sh'), [directory]);
  }, 900_000);
  afterAll(() => rm(directory, { recursive: true }));
  const run: GpuPrograms['run'] = (line, env) => {
    const [program = '', ...argv] = line.split(' ');
    return execFileAsync(join(directory, program), argv, { env });
  };
  return {
    run,
    expectLast: async (line, says, environment) => {
      const { stdout, stderr } = await run(line, environment);
      expect({ stderr, last: stdout.trimEnd().split('\n').at(-1) }).toEqual({ stderr: '', last: says });
    },
    expectOnHosts: async (hosts, line, says, environment) => {
      const [program = '', ranks = '', ...argv] = line.split(' ');
      const page = join(await mkdtemp(join(directory, 'page-')), 'page');
      const where = ['--simulate-hosts', String(hosts), '-n', ranks, '--tag-output=none', '-x', `TEST_PAGE=${page}`];
      const job = await Command.run([...where, join(directory, program), ranks, ...argv], { environment });
      const said = job.stdout.split('\n').filter((one) => one === says);
      const stderr = DIFFER.has(program) ? withoutDifferences(job.stderr) : job.stderr;
      expect({ ...job, stderr, stdout: said.length }, job.stdout).toMatchObject({
        status: 0,
        stderr: '',
        stdout: Number(ranks),
      });
    },
  };
}
