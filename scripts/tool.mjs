// The build's tools: how they are started, and how the build ends without one.
import { execa, execaSync } from 'execa';
import { end } from './end.mjs';

/** What the tool says goes to stderr; `quiet`: only what it says there itself. One that is missing (`remedy`) or fails ends the build. */
export async function run(root, tool, args, remedy, quiet = false) {
  const ended = await execa(tool, args, {
    cwd: root,
    stdin: 'ignore',
    stdout: quiet ? 'ignore' : 2,
    stderr: 'inherit',
    reject: false,
  });
  if (hasNotStarted(ended)) end(`${tool}: ${ended.originalMessage}; ${remedy}`);
  if (ended.failed) end(`${tool} ended with status ${ended.exitCode ?? ended.signal}`);
}

/** Of a result of execa's. */
export function hasNotStarted({ exitCode, signal }) {
  return exitCode === undefined && signal === undefined;
}

/** Returns what the tool prints. Ends the build with the tool's own words if it fails. */
export function need(tool, args, options = {}) {
  const ended = execaSync(tool, args, { maxBuffer: 2 ** 26, reject: false, stripFinalNewline: false, ...options });
  return ended.failed ? end(ended.message) : ended.stdout;
}

/** What it prints, or null where it is not there or fails. */
export function outputOf(tool, args) {
  const { failed, stdout } = execaSync(tool, args, {
    stdin: 'ignore',
    stderr: 'ignore',
    reject: false,
    stripFinalNewline: false,
  });
  return failed ? null : stdout;
}
