// The build's tools: how they are started, and how the build ends without one.
import { spawn, spawnSync } from 'node:child_process';

/** One sentence, and a status that tells. */
export function end(sentence) {
  console.error(`ncclrun build: ${sentence}`);
  process.exit(1);
}

/** What the tool says goes to stderr; `quiet`: only what it says there itself. One that is missing (`remedy`) or fails ends the build. */
export async function run(root, tool, args, remedy, quiet = false) {
  const running = spawn(tool, args, { cwd: root, stdio: ['ignore', quiet ? 'ignore' : 2, 2] });
  const ended = await ending(running);
  if (ended instanceof Error) end(`${tool}: ${ended.message}; ${remedy}`);
  if (ended !== 0) end(`${tool} ended with status ${ended}`);
}

/** A status, a signal's name, or why it did not start. */
export function ending(running) {
  return new Promise((resolve) => {
    running.on('error', resolve);
    running.on('close', (status, signal) => resolve(status ?? signal));
  });
}

/** Returns what the tool prints. Ends the build with the tool's own words if it fails. */
export function need(tool, args, options = {}) {
  const { error, status, stdout, stderr } = spawnSync(tool, args, { encoding: 'utf8', maxBuffer: 2 ** 26, ...options });
  return status === 0 ? stdout : end(`${tool} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/** What it prints, or null where it is not there or fails. */
export function outputOf(tool, args) {
  const { error, status, stdout } = spawnSync(tool, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return error === undefined && status === 0 ? stdout : null;
}
