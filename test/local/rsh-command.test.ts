/** --rsh CMD: a shell of any kind, and what becomes of what it says. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-rsh-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** A command that is called as CMD host command. */
function shell(name: string, script: string): string {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/bash\n${script}\n`, { mode: 0o755 });
  return path;
}

/** Words of the line that starts an agent. */
const ours = /n_start|n_cache|printf|trap|dlopen|createHash/;

describe('an rsh command that prints its command line and fails', () => {
  it.each([
    ['unchanged', 'echo "would run on $1: $2"'],
    ['quoted', 'printf "would run on $1: %q\\n" "$2"'],
    ['in several lines', 'echo "would run on $1:"; fold -w 70 <<<"$2"'],
    ['as JSON', 'echo "would run on $1: {\\"command\\": \\"${2//\\"/\\\\\\"}\\"}"'],
    ['with set -x', 'echo "would run on $1:"; set -x; : "$@"'],
  ])('the launcher hides its own command when the rsh command prints it %s', async (name, script) => {
    const command = shell(name.replaceAll(' ', '-'), `{ ${script}; echo "no such pod: $1"; } >&2; exit 4`);
    const { failures, outcome } = await Command.result(['--rsh', command, '-H', 'pod7:1', 'true']);
    expect(failures).toMatchObject([{ type: 'host-unreachable', host: 'pod7' }]);
    expect(outcome.stderr).toMatch(/^ {4}\| no such pod: pod7$/m);
    expect(outcome.stderr).not.toMatch(ours);
    expect(outcome.stderr.split('\n').length).toBeLessThan(10);
    expect(outcome.stderr).toContain(`try: ${command} pod7 true`);
    expect(outcome.status).toBe(125);
  });
});

it('an rsh command may print before the host runs the command', async () => {
  const command = shell('talker', 'echo "entering $1 now"; shift; exec sh -c "$*"');
  const { status, stdout, stderr } = await Command.run(['--rsh', command, '-H', 'ann@pod7:1', 'echo', 'done']);
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'done\n', stderr: '' });
});

it('the launcher quotes an rsh command that prints and runs nothing', async () => {
  const command = shell('mute', 'echo "no pod for $1 now"');
  const { failures, outcome } = await Command.result(['--rsh', command, '-H', 'ann@pod7:1', 'true']);
  expect(failures).toMatchObject([{ type: 'agent', host: 'pod7' }]);
  expect(outcome.stderr).toContain('it sent text, which is no frame: "no pod for ann@pod7 now"');
  expect(outcome.stderr).toContain(
    `its login must run our command and may only print before it: ${command} ann@pod7 true`,
  );
});

it('an rsh command that traces itself on stderr works', async () => {
  const command = shell('tracer', 'set -x; host=$1; shift; exec sh -c "$*"');
  const { status, stdout, stderr } = await Command.run(['--rsh', command, '-H', 'pod7:1', 'echo', 'done']);
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'done\n', stderr: '' });
});

it('the launcher rejects a port with an rsh command and names the alternatives', async () => {
  const command = shell('portless', 'exit 1');
  writeFileSync(join(directory, 'hosts'), 'pod7 slots=1 port=2222\n');
  const hosts = ['--hostfile', join(directory, 'hosts')];
  const { status, stderr } = await Command.run(['--rsh', command, ...hosts, 'true']);
  expect(stderr).toContain('cannot be told the port 2222');
  expect(stderr).toContain('use --rsh ssh2 or openssh');
  expect(status).toBe(125);
});

it('the launcher names an rsh command that does not exist', async () => {
  const { status, stderr } = await Command.run(['--rsh', '/nonexistent/shell -x', '-H', 'pod7:1', 'true']);
  expect(stderr).toMatch(/cannot start \/nonexistent\/shell: .*\n {2}next: check the command given to --rsh/);
  expect(status).toBe(125);
});
