// The build's tools: how they are started, and how the build ends without one.
import { spawnSync } from 'node:child_process';

/** One sentence, and a status that tells. */
export function end(sentence) {
  console.error(`ncclrun build: ${sentence}`);
  process.exit(1);
}

/** What the tool says goes to the terminal. One that is missing (`remedy`) or fails ends the build. */
export function run(root, tool, args, remedy) {
  const { error, status } = spawnSync(tool, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) end(`${tool}: ${error.message}; ${remedy}`);
  if (status !== 0) end(`${tool} ended with status ${status}`);
}

/** What it prints, or null where it is not there or fails. */
export function outputOf(tool, args) {
  const { error, status, stdout } = spawnSync(tool, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return error === undefined && status === 0 ? stdout : null;
}
