/** Programs of Open MPI among the processes of a rank: the libraries that programs are linked with, and when a rank is looked at. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { MpiPrograms } from '../../worker/agent/mpi-programs.ts';
import { neededLibraries } from '../../worker/agent/needed-libraries.ts';
import { openMpiProgram } from '../../worker/agent/open-mpi.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-needed-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.useRealTimers());

/** A process tree; the shell's first line is the number of a process below it. */
async function tree(script: string): Promise<{ readonly child: ChildProcess; readonly below: number }> {
  const child = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void child.stdin.end());
  const [line]: unknown[] = await once(child.stdout, 'data');
  return { child, below: Number(String(line)) };
}

const STRINGS_AT = 0x200;
const ADDRESS = 0x1000;

/** An ELF file of a loaded and a dynamic segment, with the names that stand in its table of strings. */
function program(strings: string, needed: readonly number[], { magic = 0x7f, tableAddress = ADDRESS } = {}): string {
  const bytes = Buffer.alloc(STRINGS_AT + strings.length);
  bytes.set([magic, 0x45, 0x4c, 0x46, 2, 1]);
  bytes.writeBigUInt64LE(64n, 32);
  bytes.writeUInt16LE(2, 56);
  const segment = (index: number, type: number, offset: number, address: number, length: number): void => {
    const at = 64 + 56 * index;
    bytes.writeUInt32LE(type, at);
    for (const [field, value] of [offset, address].entries()) bytes.writeBigUInt64LE(BigInt(value), at + 8 + 8 * field);
    bytes.writeBigUInt64LE(BigInt(length), at + 32);
  };
  const entries = [[5, tableAddress] as const, [10, strings.length] as const, ...needed.map((at) => [1, at] as const)];
  segment(0, 1, STRINGS_AT, ADDRESS, strings.length);
  segment(1, 2, 0x100, 0, 16 * entries.length);
  for (const [index, [tag, value]] of entries.entries()) {
    bytes.writeBigUInt64LE(BigInt(tag), 0x100 + 16 * index);
    bytes.writeBigUInt64LE(BigInt(value), 0x108 + 16 * index);
  }
  bytes.write(strings, STRINGS_AT, 'latin1');
  const path = join(directory, 'program');
  writeFileSync(path, bytes);
  return path;
}

describe('the libraries that a program is linked with', () => {
  it('the program that runs this test needs the C library', () => {
    expect(neededLibraries(process.execPath)).toContain('libc.so.6');
  });

  it.each([
    ['names stand in the order of the entries', '\0libmpi.so.40\0libc.so.6\0', [14, 1], ['libc.so.6', 'libmpi.so.40']],
    ['a name without an end goes up to the end of the table', '\0libmpi.so.40', [1], ['libmpi.so.40']],
    ['a name beyond the table is empty', '\0libm.so\0', [9, 10, 2 ** 52], ['', '', '']],
    ['a program may need nothing', '\0', [], []],
  ])('%s', (_title, strings, needed, expected) => {
    expect(neededLibraries(program(strings, needed))).toEqual(expected);
  });

  it('a file that is no program, or whose table is not loaded, has none', () => {
    const strings = '\0libc.so.6\0';
    expect(neededLibraries(program(strings, [1], { magic: 0x7e }))).toEqual([]);
    const addresses = [ADDRESS - 1, ADDRESS + strings.length];
    expect(addresses.map((tableAddress) => neededLibraries(program(strings, [1], { tableAddress })))).toEqual([[], []]);
    const short = join(directory, 'short');
    writeFileSync(short, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]));
    expect(neededLibraries(short)).toEqual([]);
  });
});

describe('a program of Open MPI', () => {
  it('the process itself is looked at before the processes below it', async () => {
    const { child, below } = await tree('sh -c "sh -c \'echo \\$\\$; read line\'; :"; :');
    const { pid = 0 } = child;
    const looked: number[] = [];
    const found = openMpiProgram(pid, (one) => {
      looked.push(one);
      return one === below ? 'libmpi.so.40' : null;
    });
    expect([found, looked[0], looked.at(-1), looked.length]).toEqual(['libmpi.so.40', pid, below, 3]);
    expect(openMpiProgram(pid, (one) => `library of ${one}`)).toBe(`library of ${pid}`);
  });

  it('programs of another kind, and processes that have ended, are none', () => {
    expect(openMpiProgram(process.pid)).toBeNull();
    expect(openMpiProgram(2 ** 30)).toBeNull();
  });
});

describe('the looks at rank 0', () => {
  const placement = { hostIndex: 0, hostCount: 1, programs: [], ranks: [] };

  function programs({ rankCount = 2, isMpi = true }): { readonly programs: MpiPrograms; readonly reports: unknown[] } {
    const reports: unknown[] = [];
    const one = new MpiPrograms({
      order: { jobId: 'j', epoch: 0, hostName: 'h' },
      placement: { ...placement, rankCount, ...(isMpi ? { pmi: '(vector,(0,1,2))' } : {}) },
      send: () => expect.unreachable(),
      sendUp: () => expect.unreachable(),
      report: (report) => void reports.push(report),
      replay: () => expect.unreachable(),
    });
    return { programs: one, reports };
  }

  it.each([
    ['rank 0 of two is looked at', 0, {}, 1],
    ['rank 1 is not looked at', 1, {}, 0],
    ['a lone rank is not looked at', 0, { rankCount: 1 }, 0],
    ['a rank of a job without PMI is not looked at', 0, { isMpi: false }, 0],
  ])('%s', (_title, rank, changes, timers) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    programs(changes).programs.spawned(rank, 2 ** 30);
    expect(vi.getTimerCount()).toBe(timers);
  });

  it('rank 0 is looked at 50 ms, 1 s, 5 s and 20 s after its start, and then no more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { programs: one, reports } = programs({});
    one.spawned(0, 2 ** 30);
    for (const [index, milliseconds] of [50, 950, 4000, 15_000].entries()) {
      vi.advanceTimersByTime(milliseconds - 1);
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(1);
      expect(vi.getTimerCount()).toBe(0);
      await vi.dynamicImportSettled();
      expect(vi.getTimerCount()).toBe(index === 3 ? 0 : 1);
    }
    expect(reports).toEqual([]);
  });

  it('rank 0 is looked at no more when it has ended, or the agent closes', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { programs: one } = programs({});
    const exit = { exitCode: 0, signalNumber: null };
    one.spawned(0, 2 ** 30);
    one.rankEnded(1, exit);
    expect(vi.getTimerCount()).toBe(1);
    one.rankEnded(0, exit);
    expect(vi.getTimerCount()).toBe(0);
    one.spawned(0, 2 ** 30);
    one.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
