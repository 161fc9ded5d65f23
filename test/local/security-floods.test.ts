/**
 * The launcher as it is started, and a host that says a gigabyte of one thing, as fast as it can. However much it says, the launcher's memory stays
 * bounded, it hears signals, and where the host breaks a bound it is cut off and named.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { floods } from '../rig/attack/floods.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { processorMilliseconds, residentBytes } from '../rig/processes.ts';
import { until } from '../rig/until.ts';
import { sample } from '../rig/whole.ts';

const LAUNCH_FAILED = 125;
const TERMINATED = 143;
const OFFERED_BYTES = 2 ** 30;
/** What the launcher has with its windows full, and half as much again; a flood without bounds would be a gigabyte. */
const MAX_BYTES = 400e6;
const SAMPLE_MS = 5;
/** On a machine with much else to do. */
const LIMIT_MS = 100_000;
const TEST_MS = 2 * LIMIT_MS;

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-floods-'));
afterAll(() => rmSync(directory, { recursive: true }));
const program = fileURLToPath(new URL('../rig/programs/hostile-agent.ts', import.meta.url));

/** A remote shell that takes the host's name and a command, and runs the hostile agent instead. */
function shell(what: string): string {
  const path = join(directory, what.replaceAll(/\W+/g, '-'));
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' --no-warnings '${program}' '${what}' ${OFFERED_BYTES}\n`, {
    mode: 0o755,
  });
  return path;
}

/** Until it ends, and what it had in memory at most. */
async function watched(command: Command): Promise<Outcome & { readonly maxBytes: number }> {
  let maxBytes = 0;
  const sampling = setInterval(() => (maxBytes = Math.max(maxBytes, residentBytes(command.pid))), SAMPLE_MS);
  try {
    return { ...(await command.endedWithin(LIMIT_MS)), maxBytes };
  } finally {
    clearInterval(sampling);
  }
}

/** Nothing of it is kept, or no faster than it is taken: it is no breach, however much of it comes. */
const harmless: readonly string[] = ['output in small frames', 'calls'];
/** By then a flood without bounds would have filled the memory. */
const BUSY_MS = 2000;

describe('a host that floods the launcher beyond a bound', () => {
  it.each(Object.keys(floods).filter((what) => !harmless.includes(what)))(
    'the launcher disconnects and names a host that sends endless %s',
    async (what) => {
      await using command = Command.start(['--rsh', shell(what), '-H', 'far:1', '/bin/true']);
      const { status, stderr, maxBytes } = await watched(command);
      expect({ status, megabytes: maxBytes / 1e6 }).toEqual({
        status: LAUNCH_FAILED,
        megabytes: expect.toSatisfy((max: number) => max < MAX_BYTES / 1e6),
      });
      expect(stderr).toMatch(/^ncclrun: .*\bfar\b/m);
    },
    TEST_MS,
  );
});

describe('a host that floods the launcher within the bounds', () => {
  it.each(sample(harmless, 2))(
    'the launcher keeps its memory bounded and ends on SIGTERM during endless %s',
    async (what) => {
      await using command = Command.start(['--rsh', shell(what), '-H', 'far:1', '--grace', '1', '/bin/true']);
      const watching = watched(command);
      await until('the launcher is busy', () => processorMilliseconds(command.pid) > BUSY_MS, LIMIT_MS);
      command.signal('SIGTERM');
      const { status, maxBytes } = await watching;
      expect(status).toBe(TERMINATED);
      expect(maxBytes).toBeLessThan(MAX_BYTES);
    },
    TEST_MS,
  );
});
