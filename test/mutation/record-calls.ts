/** Set-up of each unit test file while a mutation run takes stock: writes down which of our functions the file's tests call. */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Calls } from './calls.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const directory = process.env['NCCLRUN_MUTATION_CALLS'] ?? '';
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

let started = 0;
beforeAll(() => {
  started = performance.now();
});

afterAll(() => {
  const test = (expect.getState().testPath ?? '').slice(root.length);
  const functions: Record<string, string[]> = {};
  session.post('Profiler.takePreciseCoverage', (error, counted) => {
    if (error !== null) throw error;
    for (const { url, functions: all } of counted.result) {
      const path = url.startsWith('file://') ? fileURLToPath(url) : url;
      const file = path.slice(root.length);
      if (!path.startsWith(root) || !/^(launcher|control|worker)\//u.test(file)) continue;
      const called = all.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).map(({ functionName }) => functionName);
      functions[file] = [...new Set(called)];
    }
  });
  session.disconnect();
  const calls: Calls = { test, milliseconds: performance.now() - started, functions };
  writeFileSync(join(directory, `${basename(test)}.json`), JSON.stringify(calls));
});
