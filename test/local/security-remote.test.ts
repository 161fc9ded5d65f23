/** The launcher as it is started, with a remote shell whose other end is no agent: one sentence that names the host, status 125. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { StagingMessage } from '../../launcher/remote/staging/protocol.ts';
import { type Attack, framesOf, frameKinds, noFrames } from '../rig/attack/bytes.ts';
import { Command } from '../rig/command.ts';
import { sample } from '../rig/whole.ts';

const LAUNCH_FAILED = 125;
/** As the host says it, whatever it stands for: `wanted` alone makes the launcher pack an archive. */
const words = [...Object.entries(StagingMessage), ['unknown', 255] as const].filter(
  ([, word]) => word !== StagingMessage.wanted,
);

let directory = '';
let shell = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-test-'));
  shell = join(directory, 'shell');
  await writeFile(shell, `#!/bin/sh\ncat ${join(directory, 'says')}\n`);
  await chmod(shell, 0o755);
});
afterAll(() => rm(directory, { recursive: true }));

async function survives({ name, bytes }: Attack): Promise<void> {
  await writeFile(join(directory, 'says'), bytes);
  const { status, stdout, stderr } = await Command.run(['--rsh', shell, '-H', 'far:1', '/bin/true']);
  expect({ name, status, stdout }).toEqual({ name, status: LAUNCH_FAILED, stdout: '' });
  const [sentence = '', ...details] = stderr.trim().split('\n');
  expect(sentence, name).toMatch(/^ncclrun: .*\bfar\b/);
  for (const line of details) expect(line, name).toMatch(/^( {2}| {4}|ncclrun: )\S(?!t )/);
}

describe('a remote shell that does not start an agent', () => {
  it.each(noFrames)('the launcher fails and names the host after $name', survives);

  it.each(sample(frameKinds, 4))(
    'the launcher fails and names the host after frames of kind %s',
    async (_name, kind) => {
      for (const attack of framesOf(kind).filter((_, index) => index % 4 === 0)) await survives(attack);
    },
  );

  it.each(words)('the launcher fails and names the host after the staging word %s', (name, flags) =>
    survives({ name, bytes: encodeFrame(makeFrame(FrameKind.staging, { flags })) }),
  );
});
