/**
 * How a mutation run runs the unit and local tests: one file after another, those that take the least time first. Time limits are generous:
 * a test that fails for the machine's load would count as one that has noticed the mutant.
 */
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';

/** Test files to run, in this order; all files where the variable is not set. */
const listed = process.env['NCCLRUN_MUTATION_TESTS']?.split(',');
const root = fileURLToPath(new URL('../../', import.meta.url));

class Listed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    if (listed === undefined) return await super.sort(files);
    const place = (file: TestSpecification) => listed.indexOf(file.moduleId.slice(root.length));
    return files.filter((file) => place(file) !== -1).toSorted((one, other) => place(one) - place(other));
  }
}

const suite = (name: string, timeoutSeconds: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutSeconds * 1000,
    hookTimeout: timeoutSeconds * 1000,
    env: { CUDA_VISIBLE_DEVICES: '' },
    fileParallelism: false,
    isolate: false,
    setupFiles: process.env['NCCLRUN_MUTATION_CALLS'] === undefined ? [] : ['test/mutation/record-calls.ts'],
  },
});

export default defineConfig({
  root,
  test: { pool: 'forks', sequence: { sequencer: Listed }, projects: [suite('unit', 60), suite('local', 180)] },
});
