// Runs jobs so that dist/bundle/*.code holds the compiled code of all that a usual job needs, the launcher's and the agent's. An ssh that
// stays on this machine stands in for the remote host's.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const ssh = `#!/bin/sh
for word; do
  if [ "$word" = -G ]; then echo hostname here; exit; fi
  command=$word
done
sh -c "$command"
`;
/** Each adds to what those before have recorded. */
const jobs = [
  ['-n', '2', '/bin/true'],
  ['-H', 'localhost:1,here:1', '-n', '2', '/bin/true'],
  ['perf', 'all_reduce', '-H', 'here:2', '-n', '2', '-b', '8', '-e', '8'],
  // Nothing is there; but our own ssh has been loaded when that turns out.
  ['--rsh', 'ssh2', '-H', 'nowhere.invalid:1', '/bin/true'],
];
const AGENT_PATIENCE_MS = 5000;

/** Where that fails, each start compiles for itself: slower, but no worse. */
export async function recordCode(root) {
  const bundles = join(root, 'dist/bundle');
  for (const name of ['main', 'agent', 'ssh2']) rmSync(join(bundles, `${name}.code`), { force: true });
  const bin = mkdtempSync(join(tmpdir(), 'ncclrun-record-'));
  try {
    writeFileSync(join(bin, 'ssh'), ssh, { mode: 0o755 });
    // The stand-in is the system's ssh: our own would look for a server.
    const env = {
      ...process.env,
      NCCLRUN_RSH: 'openssh',
      PATH: `${bin}:${process.env.PATH}`,
      NCCLRUN_RECORD_CODE: '1',
    };
    for (const job of jobs) spawnSync(join(root, 'bin/ncclrun'), job, { env, stdio: 'ignore', timeout: 20_000 });
    // The launcher does not wait for an agent whose ranks have ended.
    const deadline = Date.now() + AGENT_PATIENCE_MS;
    while (!existsSync(join(bundles, 'agent.code')) && Date.now() < deadline) await pause(20);
  } finally {
    rmSync(bin, { recursive: true, force: true });
  }
}
