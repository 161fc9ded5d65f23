/** Before a job begins: who asked for JSON, misspelt commands, and refusals of the operating system. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { jsonAsked } from '../../launcher/cli/json-asked.ts';
import { type JobOptionName, perfCommandLine, runCommandLine } from '../../launcher/cli/options.ts';
import { findManager } from '../../launcher/allocation/managed/manager.ts';
import { refuseMisspelt } from '../../launcher/cli/refuse-misspelt.ts';
import { mergeSettings, Settings } from '../../launcher/cli/settings.ts';
import { failureOf } from '../../launcher/job/system-failure.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { failureFrom } from './failure-from.ts';

describe('--json', () => {
  it.each([
    ['--json prog', true],
    ['-n 2 --json prog', true],
    ['-n2 --json prog', true],
    ['--json=false prog', false],
    ['--json=what prog', true],
    ['--json --json=0 prog', false],
    ['prog --json', false],
    ['-- --json', false],
    ['- --json', false],
    ['-n --json prog', true],
    ['--wdir /tmp --json prog', true],
    ['--unknown value --json prog', true],
    ['--unknown value prog --json', false],
    ['--unknown=value prog --json', false],
    ['-x A=1 --json prog', true],
    ['', false],
  ])('--json counts among our own options alone, also on a wrong command line: "%s"', (words, asked) => {
    expect(jsonAsked(words.split(' '), runCommandLine, {})).toBe(asked);
  });

  it('--json may stand behind the words of a command that starts no program', () => {
    expect(jsonAsked(['all_reduce', '--json'], perfCommandLine, {})).toBe(true);
    expect(jsonAsked(['all_reduce', '--', '--json'], perfCommandLine, {})).toBe(false);
  });

  it('NCCLRUN_JSON asks for JSON, and the option wins over it', () => {
    expect(jsonAsked(['prog'], runCommandLine, { NCCLRUN_JSON: '1' })).toBe(true);
    expect(jsonAsked(['prog'], runCommandLine, { NCCLRUN_JSON: 'nonsense' })).toBe(false);
    expect(jsonAsked(['--json=no', 'prog'], runCommandLine, { NCCLRUN_JSON: '1' })).toBe(false);
  });
});

describe('a first word that is nearly a command', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-misspelt-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  for (const [name, mode] of [
    ['prf', 0o755],
    ['tpo', 0o644],
  ] as const) {
    writeFileSync(join(directory, name), '');
    chmodSync(join(directory, name), mode);
  }
  const request = jobRequest(new Settings<JobOptionName>(mergeSettings(runCommandLine.options, [])), ['prf']);
  const elsewhere = '/nowhere:/nowhere/else';

  it('a first word that is nearly a command is refused with the command that is meant', () => {
    expect(failureFrom(() => refuseMisspelt('prf', true, request, elsewhere))).toMatchObject({
      type: 'spawn',
      program: 'prf',
      remedy: 'did you mean: ncclrun perf? ncclrun --help lists all commands',
    });
    expect(failureFrom(() => refuseMisspelt('tpo', true, request, directory))).toMatchObject({ program: 'tpo' });
  });

  it('a first word may be a program in the PATH or a path', () => {
    expect(() => refuseMisspelt('prf', true, request, `${elsewhere}:${directory}`)).not.toThrow();
    expect(() => refuseMisspelt('./prf', true, request, elsewhere)).not.toThrow();
    expect(() => refuseMisspelt('train', true, request, elsewhere)).not.toThrow();
  });

  it('a word behind options is refused only if it is the name of a command', () => {
    expect(() => refuseMisspelt('prf', false, request, elsewhere)).not.toThrow();
    expect(failureFrom(() => refuseMisspelt('perf', false, request, elsewhere))).toMatchObject({
      remedy: 'a command comes first: ncclrun perf …',
    });
  });

  it('a program of nccl-tests that is not here has a command of ours', () => {
    for (const isFirst of [true, false])
      expect(failureFrom(() => refuseMisspelt('all_reduce_perf', isFirst, request, elsewhere))).toMatchObject({
        remedy: "ncclrun's own measurement needs no nccl-tests: ncclrun perf all_reduce OPTIONS",
      });
    expect(() => refuseMisspelt('hypercube_perf', true, request, elsewhere)).not.toThrow();
  });

  it('a first word may be a program in the PATH that the ranks get', () => {
    const programs = request.programs.map((program) => ({ ...program, exports: ['PATH=/opt/tests'] }));
    expect(() => refuseMisspelt('all_reduce_perf', true, { ...request, programs }, elsewhere)).not.toThrow();
  });

  it('a first word may be a program on other hosts', () => {
    const manager = findManager('slurm', { SLURM_JOB_ID: '1', SLURM_JOB_NODELIST: 'a' });
    expect(() => refuseMisspelt('prf', true, { ...request, manager }, elsewhere)).not.toThrow();
    expect(() => refuseMisspelt('prf', true, { ...request, hostList: 'a,b' }, elsewhere)).not.toThrow();
    expect(() => refuseMisspelt('prf', true, { ...request, hostfile: 'hosts' }, elsewhere)).not.toThrow();
  });
});

function refused(code: string, message = 'it failed'): Failure {
  return failureOf(Object.assign(new Error(message), { code }));
}

describe('an error', () => {
  it('a refusal of the operating system says what can be done', () => {
    expect(refused('ENOSPC')).toEqual({
      type: 'system',
      message: 'it failed',
      remedy: 'make room there, or name another directory in TMPDIR or XDG_RUNTIME_DIR',
    });
    expect(refused('ENOMEM')).toMatchObject({ message: 'it failed' });
  });

  it('an exceeded limit says how large it is', () => {
    expect(refused('EMFILE')).toMatchObject({
      message: expect.stringMatching(/^it failed: this process may open (\d+|unlimited) files$/u),
    });
    expect(refused('EAGAIN')).toMatchObject({
      message: expect.stringMatching(/^it failed: this user may have (\d+|unlimited) processes and threads$/u),
    });
  });

  it('a message that names the limit needs no remedy', () => {
    expect(refused('EMFILE', 'too many files: see ulimit -n')).toEqual({
      type: 'system',
      message: 'too many files: see ulimit -n',
      remedy: null,
    });
  });

  it('any other error is the failure that it carries, or an internal one', () => {
    const failure = { type: 'internal', message: 'known' } as const;
    expect(failureOf(new FailureError(failure))).toBe(failure);
    expect(refused('ENOENT')).toEqual({ type: 'internal', message: 'it failed' });
    expect(failureOf(new Error('plain'))).toEqual({ type: 'internal', message: 'plain' });
    expect(failureOf({ code: 'EMFILE' })).toMatchObject({ type: 'internal' });
    expect(failureOf(Object.assign(new Error('odd'), { code: 7 }))).toEqual({ type: 'internal', message: 'odd' });
  });
});
