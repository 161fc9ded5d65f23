import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Suites run one after another, in this order. */
const order = ['unit', 'native', 'local', 'cluster', 'slurm', 'package', 'gpu', 'long'];

/** Their files share the machine: they are pure, or have jobs and hosts of their own, for which they wait most of the time. */
const shared = ['unit', 'local', 'cluster', 'slurm', 'long'];
/** How many more of them than there are cores run at once: much of their time is spent waiting. */
const more: Readonly<Record<string, number>> = { local: 1, cluster: 2, slurm: 2, long: 1 };

/** They run commands, of which a failed test shows what they said. */
const runsCommands = ['local', 'cluster', 'slurm', 'package', 'long'];

/** The others mean the same on a machine with GPUs as on one without. */
const seesGpus = ['gpu', 'slurm', 'long'];

/** For the many processes that the tests start: each would compile the same modules for itself. */
const compiled = fileURLToPath(new URL('build/test/compiled', import.meta.url));

const suite = (name: string, timeoutSeconds: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutSeconds * 1000,
    hookTimeout: timeoutSeconds * 1000,
    fileParallelism: shared.includes(name),
    maxWorkers: availableParallelism() + (more[name] ?? 0),
    env: { NODE_COMPILE_CACHE: compiled, ...(seesGpus.includes(name) ? {} : { CUDA_VISIBLE_DEVICES: '' }) },
    setupFiles: runsCommands.includes(name) ? ['test/rig/show-ended.ts'] : [],
    isolate: false, // a process for all files: what they import takes longer than many of their tests
    sequence: { groupOrder: order.indexOf(name) },
  },
});

/** Where CI wants the results as JSON. */
const resultsFile = process.env['NCCLRUN_TEST_RESULTS'];

export default defineConfig({
  test: {
    pool: 'forks',
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
    projects: [
      suite('unit', 20), // pure and fast
      suite('native', 900), // builds and runs the C++ tests
      suite('local', 60), // the real command on this machine
      suite('cluster', 90), // on hosts made of namespaces: root, Linux
      suite('slurm', 120), // the same hosts, with Slurm
      suite('package', 300), // packed and installed elsewhere
      suite('gpu', 300), // needs NVIDIA GPUs
      ...(process.env['NCCLRUN_TEST_LONG'] === '1' ? [suite('long', 300)] : []), // minutes each: .ci/full runs them
    ],
  },
});
