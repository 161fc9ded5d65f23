/** NCCL_DEBUG and its like, NCCL's configuration files, and NCCL_COMM_BLOCKING. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { noCompiler } from '../rig/gpu-programs.ts';

const MISTAKE = 'NCCL WARN ncclAllReduce: datatype 99 does not exist';

describeIf(noCompiler, "NCCL's environment variables", () => {
  let directory = '';
  let program = '';
  let home = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-nccl-debug-'));
    program = await compileWithEngine('test/rig/programs/debug.c', directory);
    home = join(directory, 'home');
    mkdirSync(home, { mode: 0o700 });
  }, 60_000);
  afterAll(() => rm(directory, { recursive: true }));

  async function run(environment: NodeJS.ProcessEnv, ...words: readonly string[]): Promise<Outcome> {
    const outcome = await Command.run(['-n', '2', '--tag-output=none', program, ...words], {
      environment: { NCCLRUN_DEVICE: 'host', HOME: home, ...environment },
    });
    expect({ status: outcome.status, stderr: outcome.stderr }).toMatchObject({ status: 0 });
    return outcome;
  }

  it('the engine writes nothing without NCCL_DEBUG', async () => {
    expect((await run({})).stderr).toBe('');
  });

  it('NCCL_DEBUG=VERSION makes rank 0 write the version once', async () => {
    expect((await run({ NCCL_DEBUG: 'VERSION' })).stderr).toMatch(/^NCCL version 2\.28\.9 \(ncclrun \S+\)\n$/);
  });

  it('NCCL_DEBUG=WARN writes every error and no success', async () => {
    const lines = (await run({ NCCL_DEBUG: 'warn' })).stderr.trimEnd().split('\n');
    expect(lines.filter((line) => line.includes(MISTAKE))).toHaveLength(2);
    expect(lines).toHaveLength(3);
    expect(lines.find((line) => line.includes(MISTAKE))).toMatch(new RegExp(`^${hostname()}:\\d+:\\d+ NCCL WARN `));
  });

  it('each rank warns once of a tuner that it was asked to call', async () => {
    const { stderr } = await run({ NCCL_DEBUG: 'WARN', NCCL_TUNER_PLUGIN: 'nowhere', NCCL_PROFILER_PLUGIN: 'none' });
    const lines = stderr.split('\n').filter((line) => line.includes('PLUGIN'));
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line).toContain('NCCL WARN NCCL_TUNER_PLUGIN=nowhere: nowhere: cannot open shared object file');
      expect(line).toContain('ncclrun calls no tuner: its planner chooses');
    }
  });

  it('NCCL_DEBUG=INFO writes the device, the transports and the algorithms', async () => {
    const { stderr } = await run({ NCCL_DEBUG: 'INFO', NCCL_ALGO: 'ring' });
    expect(stderr).toContain('NCCL INFO NCCL_ALGO=ring, as the environment says');
    expect(stderr).not.toContain('NCCLRUN_UNIQUE_ID');
    for (const rank of [0, 1]) {
      expect(stderr).toContain(`NCCL INFO rank ${rank} of 2 is on the host device, because NCCLRUN_DEVICE=host`);
      expect(stderr).toMatch(
        new RegExp(
          `NCCL INFO rank ${rank} of 2 on \\S+: ready: 2 ranks on 1 hosts, 2 on this one, ` +
            String.raw`after [\d.]+ ms: plan [\d.]+, connections [\d.]+, barrier [\d.]+`,
        ),
      );
      expect(stderr).toMatch(
        new RegExp(`rank ${rank} of 2 on \\S+: channel 0: ring to rank ${1 - rank} by shared memory`),
      );
      expect(stderr).toMatch(
        new RegExp(`rank ${rank} of 2 on \\S+: all_reduce: .*larger: ring, Simple, \\d+ channels`),
      );
    }
  });

  it.each([
    ['TUNING', /all_reduce: /, / is on the host device/],
    ['^TUNING', / is on the host device/, /all_reduce: /],
    ['init,env', / is on the host device/, /all_reduce: |by shared memory/],
  ])('NCCL_DEBUG_SUBSYS=%s filters the lines of INFO', async (subsystems, has, lacks) => {
    const { stderr } = await run({ NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: subsystems });
    expect(stderr).toMatch(has);
    expect(stderr).not.toMatch(lacks);
  });

  it('NCCL_DEBUG=TRACE writes the calls of the program', async () => {
    expect((await run({ NCCL_DEBUG: 'TRACE' })).stderr).toMatch(/NCCL CALL ncclAllReduce\(0x\w+,0x\w+,1,2,0,0x\w+,/);
  });

  it('NCCL_DEBUG_FILE creates a file per host and process', async () => {
    const logs = join(directory, 'logs');
    mkdirSync(logs);
    const { stderr } = await run({ NCCL_DEBUG: 'WARN', NCCL_DEBUG_FILE: join(logs, '100%%-%h-%p.%x') });
    expect(stderr).toBe('');
    const names = readdirSync(logs);
    expect(names).toHaveLength(2);
    for (const name of names) {
      expect(name).toMatch(new RegExp(`^100%-${hostname()}-\\d+\\.%x$`));
      expect(readFileSync(join(logs, name), 'utf8')).toContain(MISTAKE);
    }
  });

  it('the engine reports an NCCL_DEBUG_FILE that it cannot write, and writes to stderr', async () => {
    const { stderr } = await run({ NCCL_DEBUG: 'WARN', NCCL_DEBUG_FILE: join(directory, 'none/log') });
    expect(stderr).toMatch(/NCCL WARN NCCL_DEBUG_FILE=.*: cannot write to .*none\/log: No such file or directory/);
    expect(stderr).toContain(MISTAKE);
  });

  it('NCCL_CONF_FILE sets variables that the environment lacks, for planner and engine', async () => {
    const file = join(directory, 'nccl.conf');
    writeFileSync(file, '# of the cluster\nNCCL_DEBUG=INFO\nNCCL_ALGO=ring\nNCCL_PROTO=ll\nLD_PRELOAD=/nowhere.so\n');
    const { stderr } = await run({ NCCL_CONF_FILE: file, NCCL_PROTO: 'simple' });
    expect(stderr).toMatch(/all_reduce: larger: ring, Simple/);
    expect(stderr).not.toContain('nowhere');
  });

  it('the engine reads ~/.nccl.conf unless NCCL_CONF_FILE names another file', async () => {
    writeFileSync(join(home, '.nccl.conf'), 'NCCL_DEBUG=VERSION\n');
    expect((await run({})).stderr).toContain('NCCL version');
    const other = join(directory, 'empty.conf');
    writeFileSync(other, '');
    expect((await run({ NCCL_CONF_FILE: other })).stderr).toBe('');
  });

  it('the engine ignores a ~/.nccl.conf that others may write to, and reports it', async () => {
    writeFileSync(join(home, '.nccl.conf'), 'NCCL_DEBUG=VERSION\n');
    chmodSync(join(home, '.nccl.conf'), 0o666);
    const { stderr } = await run({});
    expect(stderr).toMatch(/^ncclrun: ignored \S+\.nccl\.conf: .*; to use it, make it/);
    expect(stderr).not.toContain('NCCL version');
    await rm(join(home, '.nccl.conf'));
  });

  it.each([
    ['0', '7\n7\n'],
    ['1', '0\n0\n'],
  ])('NCCL_COMM_BLOCKING=%s determines whether ncclCommInitRank waits', async (blocking, returned) => {
    expect((await run({ NCCL_COMM_BLOCKING: blocking }, 'begin')).stdout).toBe(returned);
  });
});
