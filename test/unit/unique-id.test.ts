/** What an id that is made outside a job says of where it can be joined, as control/messages/bootstrap.ts lays it out. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const script = `
  import { loadNative } from './worker/engine/load.ts';
  const ids = [0, 1].map(() => Buffer.from(loadNative().getUniqueId()).toString('hex'));
  console.log(ids.join());
`;

/** Two ids that one process makes in this environment. */
function idsIn(environment: NodeJS.ProcessEnv): readonly Buffer[] {
  const argv = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const env = { PATH: process.env['PATH'], ...environment };
  const text = execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8', env });
  return text
    .trim()
    .split(',')
    .map((hex) => Buffer.from(hex, 'hex'));
}
const first = (environment: NodeJS.ProcessEnv): Buffer => idsIn(environment)[0] ?? Buffer.alloc(0);
const hostOf = (id: Buffer): bigint => id.readBigUInt64LE(32);
const sessionOf = (id: Buffer): string => id.subarray(48, 64).toString('hex');

describe('an id made outside a job', () => {
  test('the id contains host, user and session and nothing else', () => {
    const [one = Buffer.alloc(0), other = Buffer.alloc(0)] = idsIn({});
    expect(one).toHaveLength(128);
    expect(one.subarray(0, 8).toString()).toBe('NCCLRUN1');
    expect(one.readBigUInt64LE(8)).toBe(0n);
    expect(one.subarray(16, 32).equals(other.subarray(16, 32))).toBe(false);
    expect(hostOf(one)).not.toBe(0n);
    expect(one.readUInt32LE(40)).toBe(process.getuid?.());
    expect(one.readUInt32LE(44)).toBe(0);
    expect(one.subarray(64).every((byte) => byte === 0)).toBe(true);
    expect(one.subarray(32).equals(other.subarray(32))).toBe(true);
  });

  test('NCCL_HOSTID determines the host of the id', () => {
    expect(hostOf(first({ NCCL_HOSTID: 'a' }))).toBe(hostOf(first({ NCCL_HOSTID: 'a' })));
    expect(hostOf(first({ NCCL_HOSTID: 'a' }))).not.toBe(hostOf(first({ NCCL_HOSTID: 'b' })));
    expect(hostOf(first({}))).toBe(hostOf(first({})));
  });

  test.each([
    [{ NCCLRUN_SESSION: 'a' }, { NCCLRUN_SESSION: 'b' }],
    [{ PMIX_NAMESPACE: '1' }, { PMIX_NAMESPACE: '2' }],
    [
      { MASTER_PORT: '1', MASTER_ADDR: 'x' },
      { MASTER_PORT: '1', MASTER_ADDR: 'y' },
    ],
    [
      { MASTER_PORT: '1', TORCHELASTIC_RUN_ID: 'x' },
      { MASTER_PORT: '2', TORCHELASTIC_RUN_ID: 'x' },
    ],
    [
      { SLURM_JOB_ID: '1', SLURM_STEP_ID: '0', SLURM_PROCID: '0' },
      { SLURM_JOB_ID: '1', SLURM_STEP_ID: '1', SLURM_PROCID: '0' },
    ],
  ])('the variables %j determine the session', (job, other) => {
    expect(sessionOf(first({ ...job, RANK: '0' }))).toBe(sessionOf(first({ ...job, RANK: '1' })));
    expect(sessionOf(first(job))).not.toBe(sessionOf(first(other)));
    expect(sessionOf(first({ ...job, NCCLRUN_SESSION: 'ours' }))).toBe(sessionOf(first({ NCCLRUN_SESSION: 'ours' })));
  });

  test('processes of one parent share a session, and a shell gives each its own', () => {
    expect(sessionOf(first({}))).toBe(sessionOf(first({})));
    const argv = [
      '-c',
      '"$0" "$@"; :',
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
    ];
    const byShell = (): string =>
      execFileSync('sh', [...argv, '-e', script], { cwd: root, encoding: 'utf8', env: { PATH: process.env['PATH'] } });
    expect(byShell().slice(96, 128)).not.toBe(byShell().slice(96, 128));
  });
});

test('an id made in a job contains no host, user or session', () => {
  const id = first({ NCCLRUN_AGENT: '/some/agent', NCCLRUN_JOB_ID: 'job' });
  expect(id.readBigUInt64LE(8)).not.toBe(0n);
  expect(id.subarray(32).every((byte) => byte === 0)).toBe(true);
});
