/** The program itself: which command a command line means, and what its user reads when it fails. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { captured } from '../rig/captured.ts';

const home = mkdtempSync(join(tmpdir(), 'ncclrun-main-'));
const usual = process.argv;
afterAll(() => rmSync(home, { recursive: true }));
beforeEach(() => {
  vi.resetModules(); // the module runs when it is loaded
  vi.stubEnv('HOME', home);
  vi.stubEnv('XDG_CONFIG_HOME', join(home, 'none'));
  vi.stubEnv('NO_COLOR', '1');
});
afterEach(() => {
  process.argv = usual;
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** What ends the process, which goes on here. */
class Exit extends Error {}

interface Started {
  readonly during?: () => void;
  readonly until?: number | null;
}

/** While somebody listens, the process ends as Node ends processes. */
const atExit = (): void => {};
const ignored = (error: unknown): void => {
  if (!(error instanceof Exit)) throw error;
};

/** `during`: happens once the program has begun. `until`: the status for which the test waits; null: any. */
async function started(words: readonly string[], { during = () => {}, until = null }: Started = {}) {
  const before = process.listeners('uncaughtException');
  process.on('exit', atExit);
  const { promise: status, resolve } = Promise.withResolvers<number>();
  vi.spyOn(process, 'exit').mockImplementation((code) => {
    if (until === null || code === until) resolve(Number(code));
    throw new Exit();
  });
  process.on('unhandledRejection', ignored);
  process.argv = ['node', 'ncclrun', ...words];
  try {
    return await captured(async () => {
      await import('../../launcher/main.ts');
      during();
      const code = await status;
      await new Promise((done) => setImmediate(done));
      return code;
    });
  } finally {
    process.off('exit', atExit);
    process.off('unhandledRejection', ignored);
    for (const added of process.listeners('uncaughtException'))
      if (!before.includes(added)) process.off('uncaughtException', added);
  }
}

describe('a command line', () => {
  test('the first word may be a command', async () => {
    const { status, stdout, stderr } = await started(['version']);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^ncclrun [0-9.]+/u);
  });

  test('any other first word begins a job', async () => {
    expect(await started(['--stdin', 'none', '-n', '1', 'echo', 'version'])).toEqual({
      status: 0,
      stdout: 'version\n',
      stderr: '',
    });
  });

  test('one that is wrong is refused in one sentence, without a stack', async () => {
    const { status, stdout, stderr } = await started(['-n', 'many', 'true']);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^ncclrun: .*many/u);
    expect(stderr).not.toContain('    at ');
  });

  test('NCCLRUN_DEBUG=1 adds the stack', async () => {
    vi.stubEnv('NCCLRUN_DEBUG', '1');
    expect((await started(['-n', 'many', 'true'])).stderr).toContain('    at ');
  });

  test.each([[['--json', '-n', 'many', 'true']], [['perf', '--json', '-n', 'many']]])(
    '%j that is wrong prints the result that --json promises',
    async (words) => {
      const { status, stdout } = await started(words);
      expect(status).toBe(2);
      expect(JSON.parse(stdout)).toMatchObject(words[0] === 'perf' ? {} : { ok: false, exitCode: 2, reason: 'usage' });
    },
  );

  test('options of a job are none of ncclrun perf’s word', async () => {
    expect((await started(['perf', '-n', 'many', '--', '--json'])).stdout).toBe('');
  });

  test('notes on NCCL’s files come first', async () => {
    const file = join(home, 'missing.conf');
    vi.stubEnv('NCCL_CONF_FILE', file);
    const { status, stderr } = await started(['version']);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^ncclrun: .*missing\.conf/u);
  });
});

describe('a failure of the machine or of ours', () => {
  test('a directory that is gone is said so', async () => {
    vi.spyOn(process, 'cwd').mockImplementation(() => {
      throw Object.assign(new Error('ENOENT: no such file or directory, uv_cwd'), {
        code: 'ENOENT',
        syscall: 'uv_cwd',
      });
    });
    const { status, stderr } = await started(['-n', '1', 'true']);
    expect(status).toBe(2);
    expect(stderr).toBe('ncclrun: the directory that you stand in is gone\n  next: cd to one that exists\n');
  });

  test('what nobody catches ends the program with a sentence', async () => {
    const before = process.listeners('uncaughtException');
    const crash = (): void => {
      const [own] = process.listeners('uncaughtException').filter((one) => !before.includes(one));
      own?.(new Error('broken'), 'uncaughtException');
    };
    const { stderr } = await started(['version'], { during: crash, until: 125 });
    expect(stderr).toContain('broken');
  });
});
