import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { loadNative } from '../../worker/engine/load.ts';
import { traceTo, traced } from '../../worker/engine/trace.ts';

afterEach(() => vi.unstubAllEnvs());

it('traced() returns the addon itself unless NCCLRUN_TRACE_NATIVE is set', () => {
  const native = loadNative();
  for (const value of ['', '0', undefined]) {
    vi.stubEnv('NCCLRUN_TRACE_NATIVE', value);
    expect(traced(native)).toBe(native);
  }
  vi.stubEnv('NCCLRUN_TRACE_NATIVE', '1');
  expect(traced(native)).not.toBe(native);
});

it('the trace contains each call with its arguments, outcome and duration', () => {
  const lines: string[] = [];
  const native = traceTo(loadNative(), (line) => lines.push(line));
  expect(native.freePorts(1, 0, 0)).toHaveLength(1);
  expect(() => native.commInit(new Uint8Array(3), 1, 0, null)).toThrow('uniqueId is not 128 bytes long');
  expect(lines).toEqual([
    expect.stringMatching(/^ncclrun native \[\d+\] freePorts\(1, 0, 0\) took [\d.]+ us\n$/),
    expect.stringMatching(/ commInit\(Uint8Array\(3 bytes\), 1, 0, null\) threw \(TypeError: .*\) after [\d.]+ us\n$/),
  ]);
});

it('the trace is appended to the file that NCCLRUN_TRACE_NATIVE names', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-trace-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'trace');
  vi.stubEnv('NCCLRUN_TRACE_NATIVE', file);
  const native = traced(loadNative());
  for (const count of [1, 2]) native.freePorts(count, 0, 0);
  expect(readFileSync(file, 'utf8')).toMatch(/^.*freePorts\(1, 0, 0\) took .*\n.*freePorts\(2, 0, 0\) took .*\n$/);
});
