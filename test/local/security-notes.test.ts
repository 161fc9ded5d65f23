/** What `ncclrun ps` reads, planted by others and by processes of the same user that lie: it lists what is true, or nothing. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NOTE_NAME } from '../../launcher/jobs/note.ts';
import { NOBODY, ROOT } from '../rig/attack/socket.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const JOB = 'deadbeef0000';
const note = { schemaVersion: 1, jobId: JOB, startedAt: 1, programs: [['prog']], hosts: [{ name: 'h', ranks: [0] }] };
const DEEP = 100_000;
const HUGE_BYTES = 64 * 1024 * 1024;

const program = `
const { sealedMemory } = require(process.argv[1]);
process.kept = sealedMemory(require('node:fs').readFileSync(0), ${JSON.stringify(NOTE_NAME)});
console.log('planted');
setInterval(() => undefined, 1000);
`;

/** A process of that user with such a note. */
async function planted(user: number, text: string): Promise<ChildProcess & AsyncDisposable> {
  const who = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', process.execPath, '-e', program];
  const child = spawn('setpriv', [...who, join(repository, 'build/ncclrun.node')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(text);
  await once(child.stdout, 'data');
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  });
}

async function isListed(): Promise<boolean> {
  const { status, stdout, stderr } = await Command.run(['ps', '--json']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.includes(JOB);
}

describeIf(process.getuid?.() === 0 ? null : 'to become another user needs root', 'the note of a job', () => {
  it('ncclrun ps lists the note of a process of this user', async () => {
    await using _ = await planted(ROOT, JSON.stringify(note));
    expect(await isListed()).toBe(true);
  });

  it('ncclrun ps does not list the note of another user', async () => {
    await using _ = await planted(NOBODY, JSON.stringify(note));
    expect(await isListed()).toBe(false);
  });

  it.each<[string, string]>([
    ['is not JSON', JOB],
    ['is empty', ' '],
    ['is truncated', JSON.stringify(note).slice(0, -1)],
    ['is of another schema', JSON.stringify({ ...note, schemaVersion: 2 })],
    ['has a negative rank', JSON.stringify({ ...note, hosts: [{ name: 'h', ranks: [-1] }] })],
    ['lacks its hosts', JSON.stringify({ ...note, hosts: undefined })],
    ['is nested too deeply', `{"jobId":"${JOB}","hosts":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`],
    ['is huge', `${JSON.stringify(note).padEnd(HUGE_BYTES)}x`],
  ])('ncclrun ps does not list a note that %s', async (_name, text) => {
    await using _ = await planted(ROOT, text);
    expect(await isListed()).toBe(false);
  });
});
