/** The program interface, used by real ranks (interface/program.ts). */
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';

const topics = join(import.meta.dirname, 'interface');
const program = join(topics, 'program.ts');
const cases = readdirSync(topics).flatMap((file) =>
  [...readFileSync(join(topics, file), 'utf8').matchAll(/^ {2}async (?:'([^']+)'|(\w+))\(\) \{$/gm)].map(
    ([, quoted, plain]) => quoted ?? plain ?? '',
  ),
);
const ending = 'terminatedWhileJoining';

describe('a communicator', () => {
  it.each(cases.filter((name) => name !== ending))('three ranks pass the case "%s"', async (name) => {
    const { status, stderr } = await Command.run(['-n', '3', program, name]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('the process survives when a worker thread ends while its communicator joins', async () => {
    const { status, stderr } = await Command.run(['-n', '1', program, ending]);
    // The rank itself ended well; that it left a communicator half joined may be held against the job.
    expect(stderr).not.toMatch(/died of/);
    expect([0, 125]).toContain(status);
  });

  it('a communicator of one rank works', async () => {
    for (const name of [
      'the communicator describes itself',
      'reductions give exact results',
      'gather, scatter, broadcast and reduce are exact',
      'averages and pre-multiplied sums are exact',
      'ranks exchange messages',
    ]) {
      const { status, stderr } = await Command.run(['-n', '1', program, name]);
      expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
    }
  });

  it('NCCLRUN_TRACE_NATIVE logs every call into native code', async () => {
    const { status, stderr } = await Command.run([
      '-n',
      '1',
      '-x',
      'NCCLRUN_TRACE_NATIVE=1',
      program,
      'a program may end without closing',
    ]);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^ncclrun native \[\d+\] commInit\(Uint8Array\(128 bytes\), 1, 0, null\) took [\d.]+ us$/m);
    expect(stderr).toMatch(
      /operate\(handle, 3, Float32Array\(4 bytes\), Float32Array\(4 bytes\), 1, 7, 0, 0, null\) took [\d.]+ us$/m,
    );
  });

  it('init() fails outside a job and names the ncclrun command', () => {
    const { status, stderr } = spawnSync(process.execPath, [program, 'the communicator describes itself'], {
      env: { PATH: process.env['PATH'] },
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toContain('this process is no rank of a job. Start it with: ncclrun -n N PROGRAM');
  });
});
