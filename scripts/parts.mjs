// Which of our modules and packages are in files of their own in dist/bundle/, because few starts need them (scripts/apart.mjs).
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Packages, each with what of it is imported, by name. */
export const packages = {
  yargs: { 'yargs/helpers': "require('yargs/helpers')" },
  yaml: { yaml: "require('yaml')" },
  ssh2: Object.fromEntries(
    ['lib/client.js', 'lib/protocol/keyParser.js', 'lib/agent.js'].map((path) => [
      `ssh2/${path}`,
      `require('ssh2/${path}')`,
    ]),
  ),
};

/** What the build adds to: what several parts import, of those that the agent has too, and of others. */
export const COMMON = 'topology';
export const LAUNCHER_COMMON = 'several';

/**
 * Of our own: the files and folders of each part; what only they import is in it too. A path after `!` stays where it is imported: a usual
 * start has use for it.
 */
const parts = {
  [LAUNCHER_COMMON]: [],
  [COMMON]: [
    'control/planner/known-machine.ts',
    'worker/agent/measured-tables.ts',
    'worker/topology/file.ts',
    'worker/topology/machine.ts',
  ],
  batch: [
    'launcher/batch/',
    'launcher/cli/batch/',
    'launcher/cli/commands/batch.ts',
    'launcher/cli/commands/batch-attempt.ts',
    'launcher/cli/commands/slurm-attempt.ts',
    'launcher/cli/commands/jobs.ts',
    'launcher/cli/commands/change-tasks.ts',
    'launcher/cli/commands/submit.ts',
  ],
  commands: [
    'launcher/cli/commands/',
    '!launcher/cli/commands/preflight-of.ts',
    '!launcher/cli/commands/run.ts',
    'launcher/cli/command-table.ts',
    'launcher/cli/completion/',
    'launcher/cli/dry-run.ts',
    'launcher/cli/explain-settings.ts',
    'launcher/cli/hosts-table.ts',
    'launcher/cli/json-source.ts',
    'launcher/cli/outside.ts',
    'launcher/cli/project-rules.ts',
    'launcher/cli/unknown-option.ts',
  ],
  doctor: ['launcher/cli/commands/doctor.ts'],
  foreign: ['launcher/cli/foreign/', '!launcher/cli/foreign/certain-flags.ts'],
  hosts: [
    'launcher/allocation/filter/',
    'launcher/allocation/grammar/',
    '!launcher/allocation/grammar/machine.ts',
    '!launcher/allocation/grammar/reading.ts',
    '!launcher/allocation/grammar/settings.ts',
    'launcher/allocation/managed/',
    '!launcher/allocation/managed/job-details.ts',
    '!launcher/allocation/managed/manager.ts',
    'launcher/allocation/print/',
    '!launcher/allocation/print/grammar-names.ts',
    'launcher/allocation/slots/',
    '!launcher/allocation/slots/perhaps-ports.ts',
    'launcher/remote/staging/',
  ],
  'open-mpi': ['worker/agent/open-mpi.ts'],
  plan: ['launcher/cli/commands/plan.ts'],
  planning: [
    'control/plan/',
    'control/planner/',
    '!control/planner/device/gpu-buffers.ts',
    '!control/planner/input/limits.ts',
    '!control/planner/input/preferences.ts',
    '!control/planner/input/variables.ts',
    '!control/planner/network/verbs-wanted.ts',
    '!control/planner/planner.ts',
    '!control/planner/tuning/constants.ts',
    'control/rendezvous/hub.ts',
    'control/rendezvous/live.ts',
  ],
  pmi: ['worker/agent/pmi-server.ts'],
  readings: ['worker/readings/collect.ts'],
  remote: ['launcher/remote/remote-agent.ts'],
  replay: ['launcher/cli/commands/replay.ts'],
  report: [
    'launcher/jobs/follow-server.ts',
    'launcher/report/',
    '!launcher/report/batch.ts',
    '!launcher/report/compose.ts',
    '!launcher/report/lane.ts',
    '!launcher/report/plain.ts',
    '!launcher/report/shown.ts',
    '!launcher/report/standard-streams.ts',
    '!launcher/report/tag.ts',
    '!launcher/report/unwritten.ts',
    '!launcher/report/writer.ts',
  ],
  topo: ['launcher/cli/commands/topo.ts'],
  tune: ['launcher/cli/commands/tune.ts'],
  verdicts: [
    'control/link/checked-json.ts',
    'control/link/recorder.ts',
    'control/link/stack.ts',
    'launcher/hang/',
    'launcher/straggler/',
    '!launcher/straggler/links.ts',
    '!launcher/straggler/tracker.ts',
    'worker/agent/kernel-log.ts',
    'worker/agent/nic-errors.ts',
    'worker/agent/recorder.ts',
    'worker/agent/stack-frames.ts',
    'worker/agent/stack-problem.ts',
    'worker/agent/stack-process.ts',
  ],
};

/** What an agent on another host needs sometimes, too: for all else it is one file. */
export const agentToo = new Set([COMMON, 'open-mpi', 'pmi']);

/**
 * What a job may need after its start. It is read once a short job would be over, and while one of many hosts waits for them: later the
 * installation may be replaced, or no descriptor be left to open a file. The agent does so with all of its parts.
 */
export const whileRunning = [COMMON, LAUNCHER_COMMON, 'hosts', 'planning', 'remote', 'report', 'verdicts'];
export const READ_AFTER_MS = 150;

export const partNames = Object.keys(parts);

/** Returns the part of each file. */
export function readParts(root) {
  const partOf = new Map();
  const places = Object.entries(parts).flatMap(([part, paths]) => paths.map((path) => ({ part, path })));
  for (const { part, path } of places.filter(isFolder))
    for (const file of filesBelow(root, path)) partOf.set(file, part);
  for (const { part, path } of places.filter((place) => !isFolder(place))) {
    const file = path.replace('!', '');
    if (!existsSync(join(root, file))) throw new Error(`scripts/parts.mjs names ${file}, which is not there`);
    if (path === file) partOf.set(file, part);
    else partOf.delete(file);
  }
  return partOf;
}

function isFolder({ path }) {
  return path.endsWith('/');
}

function filesBelow(root, folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.ts') && statSync(join(root, path)).isFile());
}
