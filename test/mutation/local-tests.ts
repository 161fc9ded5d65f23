/** The end-to-end tests (test/local) that exercise a file: those of the longest path below that begins the file's. */
const byPath: Readonly<Record<string, readonly string[]>> = {
  'launcher/': ['command', 'exit-status'],
  'launcher/allocation/': ['hosts', 'command'],
  'launcher/cli/': ['flags', 'command', 'usage'],
  'launcher/cli/commands/plan': ['plan-command', 'plan'],
  'launcher/cli/commands/topo': ['topo'],
  'launcher/cli/commands/tune': ['tune'],
  'launcher/cli/completion': ['completion'],
  'launcher/job/': ['exit-status', 'signals', 'restart', 'blame'],
  'launcher/job/stdin': ['stdin'],
  'launcher/job/output': ['output', 'output-live'],
  'launcher/jobs/': ['ps'],
  'launcher/mapping/': ['ranks', 'binding'],
  'launcher/plan/': ['plan-command', 'plan'],
  'launcher/remote/': ['private-agent', 'rsh-command'],
  'launcher/report/': ['output', 'result', 'output-events'],
  'launcher/report/perf': ['tool'],
  'launcher/report/live': ['output-live', 'terminal'],
  'launcher/topology/': ['topo'],
  'launcher/tune/': ['tune'],
  'control/': ['collectives', 'command'],
  'control/planner/': ['plan', 'machine-plan', 'collectives'],
  'control/planner/measured/': ['tune', 'machine-plan'],
  'control/topology/': ['topo', 'topology-files'],
  'worker/': ['interface', 'engine', 'collectives'],
  'worker/agent/': ['exit-status', 'blame', 'split', 'shrink'],
  'worker/agent/hang': ['hang'],
  'worker/agent/invited': ['strangers', 'private-agent'],
  'worker/agent/private': ['private-agent'],
  'worker/agent/topology-files': ['topology-files'],
  'worker/agent/tuning': ['machine-plan', 'tune'],
  'worker/agent/watchdog': ['watchdog'],
  'worker/agent/xid': ['xid'],
  'worker/topology/': ['topo', 'device-choice'],
};

/** Paths of test files in the repository. */
export function localTestsOf(file: string): string[] {
  const paths = Object.keys(byPath).filter((path) => file.startsWith(path));
  const [longest = ''] = paths.toSorted((one, other) => other.length - one.length);
  return (byPath[longest] ?? []).map((name) => `test/local/${name}.test.ts`);
}

/** All that the table names. */
export const namedLocalTests = [...new Set(Object.values(byPath).flat())].map((name) => `test/local/${name}.test.ts`);
