/** When operations begin and when their promises settle, and which variables NCCL's files give. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { configurationNotes, takeNcclConfiguration } from '../../control/nccl-configuration.ts';
import { ExchangeQueue } from '../../worker/exchange.ts';
import { addToGroup, group, inGroup } from '../../worker/group.ts';
import { allocate, Memory } from '../../worker/memory.ts';
import { init } from '../../worker/init.ts';
import { OperationPromises } from '../../worker/operation-promises.ts';
import type { CommHandle, Native, Operation } from '../../worker/engine/native.ts';

const handle: CommHandle = Object.create(null);
const operation = (count: number): Operation => [handle, 3, null, null, count, 0, 0, 0, null];

/** An engine that numbers groups: 0 have ended at once. */
function engine(numbers: number[] | Error) {
  const groups: number[][] = [];
  const native: Native = Object.assign(Object.create(null), {
    group(all: readonly Operation[]) {
      groups.push(all.map(([, , , , count]) => count));
      if (numbers instanceof Error) throw numbers;
      return numbers;
    },
  });
  return { native, groups };
}

function pending(promises: OperationPromises, numbers: number[]) {
  const settled: string[] = [];
  for (const number of numbers)
    void promises.of(number, operation(number))?.then(
      () => settled.push(`${number} ended`),
      (error: unknown) => settled.push(`${number} failed: ${String(error)}`),
    );
  return settled;
}

describe('promises of operations', () => {
  test('they settle in the order of their numbers, as far as operations have ended', async () => {
    const promises = new OperationPromises();
    const settled = pending(promises, [1, 2, 3, 5]);
    promises.watcher(0, []);
    await Promise.resolve();
    expect(settled).toEqual([]);
    promises.watcher(2, [[2, new Error('lost')]]);
    await Promise.resolve();
    expect(settled).toEqual(['1 ended', '2 failed: Error: lost']);
    promises.watcher(4, []);
    promises.watcher(4, [[3, new Error('late')]]);
    await Promise.resolve();
    expect(settled.slice(2)).toEqual(['3 ended']);
    const more = pending(promises, [6]);
    promises.watcher(6, []);
    await Promise.resolve();
    expect([settled.slice(3), more]).toEqual([['5 ended'], ['6 ended']]);
  });

  test('an operation that has ended yields to the event loop only from time to time', async () => {
    const promises = new OperationPromises();
    const yields = (count: number): number => {
      let found = 0;
      for (let index = 0; index < count; index++) if (promises.of(0) !== null) found += 1;
      return found;
    };
    const [seconds] = process.hrtime();
    const now = vi.spyOn(process, 'hrtime');
    try {
      now.mockReturnValue([seconds + 1000, 0]);
      yields(32);
      expect(yields(64)).toBe(0);
      now.mockReturnValue([seconds + 1000, 1_900_000]);
      expect(yields(16)).toBe(0);
      now.mockReturnValue([seconds + 1000, 2_100_000]);
      expect(yields(15) + yields(1)).toBe(1);
      expect(yields(16)).toBe(0);
      now.mockReturnValue([seconds + 2000, 0]);
      expect(yields(15)).toBe(0);
      await expect(promises.of(0)).resolves.toBeUndefined();
    } finally {
      now.mockRestore();
    }
  });
});

describe('operations that begin together', () => {
  test('a group begins when its outermost body returns', async () => {
    const { native, groups } = engine([0, 7]);
    const promises = new OperationPromises();
    const settled: string[] = [];
    const result = group(() => {
      expect(inGroup()).toBe(true);
      group(() => void addToGroup(native, promises, operation(1)).then(() => settled.push('first')));
      expect(groups).toEqual([]);
      void addToGroup(native, promises, operation(2)).then(() => settled.push('second'));
      return 'body';
    });
    expect([result, groups, inGroup()]).toEqual(['body', [[1, 2]], false]);
    await Promise.resolve();
    expect(settled).toEqual(['first']);
    promises.watcher(7, []);
    await Promise.resolve();
    await Promise.resolve();
    expect(settled).toEqual(['first', 'second']);
    group(() => undefined);
    expect(groups).toHaveLength(1);
  });

  test('a group that cannot begin rejects, and so does one whose body fails', async () => {
    const { native } = engine(new Error('refused'));
    const promises = new OperationPromises();
    let ended: Promise<void> = Promise.resolve();
    expect(() =>
      group(() => {
        ended = addToGroup(native, promises, operation(1));
        throw new Error('body');
      }),
    ).toThrow('body');
    await expect(ended).rejects.toThrow('refused');
    expect(inGroup()).toBe(false);
  });

  test('transfers of one step begin together', async () => {
    const { native, groups } = engine([0]);
    const queue = new ExchangeQueue(native, new OperationPromises());
    queue.flush();
    const both = [queue.add(operation(1)), queue.add(operation(2))];
    expect(groups).toEqual([]);
    await Promise.all(both);
    expect(groups).toEqual([[1, 2]]);
    const next = queue.add(operation(3));
    queue.flush();
    expect(groups).toEqual([[1, 2], [3]]);
    await next;
    await Promise.resolve();
    expect(groups).toHaveLength(2);
  });

  test('transfers that cannot begin reject, and pending ones wait', async () => {
    const failing = new ExchangeQueue(engine(new Error('refused')).native, new OperationPromises());
    await expect(failing.add(operation(1))).rejects.toThrow('refused');
    const promises = new OperationPromises();
    const waiting = new ExchangeQueue(engine([4]).native, promises).add(operation(1));
    await Promise.resolve();
    promises.watcher(4, [[4, new Error('lost')]]);
    await expect(waiting).rejects.toThrow('lost');
  });
});

describe('init', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test.each([-1, 0.5, 2 ** 31])('%d is no number of a GPU', async (gpu) => {
    const message = `init: gpu ${gpu} is no number of a GPU; it must be a whole number from 0`;
    await expect(init({ device: 'cuda', gpu })).rejects.toThrow(message);
    vi.stubEnv('NCCLRUN_LOCAL_RANK', String(gpu));
    await expect(init({ device: 'cuda' })).rejects.toThrow(message);
  });

  test('a GPU is for the device cuda', async () => {
    await expect(init({ gpu: 1 })).rejects.toThrow("init: gpu 1 is given, but not device: 'cuda'");
  });

  test('a signal that is aborted already ends it', async () => {
    await expect(init({ signal: AbortSignal.abort(new Error('no more')) })).rejects.toThrow('no more');
  });
});

describe('memory of the engine', () => {
  test.each([-1, 0.5, Number.NaN, 2 ** 53])('%d is no number of bytes', (bytes) => {
    expect(() => allocate(bytes)).toThrow(`allocate: ${bytes} is no number of bytes; it must be a whole number from 0`);
  });

  test('memory is freed once, and has no buffer then', () => {
    const freed: ArrayBuffer[] = [];
    const native: Native = Object.assign(Object.create(null), {
      memoryFree: (buffer: ArrayBuffer) => void freed.push(buffer),
    });
    const buffer = new ArrayBuffer(12);
    const memory = new Memory(native, buffer);
    expect([memory.byteLength, memory.buffer]).toEqual([12, buffer]);
    memory.close();
    memory[Symbol.dispose]();
    expect(freed).toEqual([buffer]);
    expect(() => memory.buffer).toThrow('memory of 12 bytes was closed before');
  });
});

const found = (): (string | undefined)[] => ['A', 'B', 'C'].map((name) => process.env[`NCCL_TEST_${name}`]);

describe('the configuration of NCCL', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-configuration-'));
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });
  const lines = ['NCCL_TEST_A=1', 'NCCL_TEST_B=two words\r', 'LD_PRELOAD=x.so', 'NCCL_TEST_C = 3', 'NCCL_TEST_A=4'];

  test('a named file gives what the environment lacks', () => {
    writeFileSync(join(directory, 'conf'), lines.join('\n'));
    vi.stubEnv('NCCL_CONF_FILE', join(directory, 'conf'));
    for (const name of ['A', 'C']) vi.stubEnv(`NCCL_TEST_${name}`, undefined);
    vi.stubEnv('NCCL_TEST_B', undefined);
    expect(takeNcclConfiguration()).toEqual([]);
    expect(found()).toEqual(['1', 'two words', undefined]);
    vi.stubEnv('NCCL_TEST_A', 'own');
    takeNcclConfiguration();
    expect(found()).toEqual(['own', 'two words', undefined]);
  });

  test('a named file that is not there has a note', () => {
    vi.stubEnv('NCCL_CONF_FILE', join(directory, 'none'));
    expect(takeNcclConfiguration()).toEqual([
      expect.stringMatching(new RegExp(`^ignored NCCL_CONF_FILE=${join(directory, 'none')}: .*ENOENT`, 'u')),
    ]);
    expect(configurationNotes()).toHaveLength(1);
  });

  test('the file of the user counts only if nobody else can write it', () => {
    vi.stubEnv('NCCL_CONF_FILE', '');
    vi.stubEnv('NCCL_TEST_A', undefined);
    vi.stubEnv('HOME', directory);
    expect(takeNcclConfiguration()).toEqual([]);
    writeFileSync(join(directory, '.nccl.conf'), 'NCCL_TEST_A=5\n', { mode: 0o600 });
    expect(takeNcclConfiguration()).toEqual([]);
    expect(process.env['NCCL_TEST_A']).toBe('5');
  });
});
