/**
 * The sockets at which engines find their agent, attacked by strangers of the same user and of another one, while ranks use them. A stranger
 * gets nothing but a refusal; the ranks take no notice.
 */
import { chmodSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BOOTSTRAP_PROTOCOL } from '../../control/messages/bootstrap.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { cuts, frameKinds, framesOf, lengths, noFrames } from '../rig/attack/bytes.ts';
import { answersTo, leaveAfter, NOBODY, record, repliesOf, ROOT } from '../rig/attack/socket.ts';
import { ranksOfJob, ranksOfShell, type Victim } from '../rig/attack/victims.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { EngineClient } from '../rig/engine-client.ts';

const KNOCKERS = 200;
const OTHER_JOB = 'deadbeef0000';
const notRoot = process.getuid?.() === 0 ? null : 'to become another user needs root';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-security-'));
});
afterAll(() => rm(directory, { recursive: true }));

const frameOfHello = (payload: Uint8Array): Uint8Array =>
  encodeFrame(makeFrame(FrameKind.engineHello, { request: 1, payload }));

function helloOf(jobId: string, protocol = BOOTSTRAP_PROTOCOL): Uint8Array {
  const writer = new ByteWriter().u32(protocol).u32(process.pid).i32(-1).string(jobId).string('0.0.0');
  return frameOfHello(writer.finish());
}

/** What a rank of another job has said first to what it took for its agent. */
async function recordedHello(): Promise<Uint8Array> {
  const program = await compileWithEngine('native/test/init_barrier.c', directory);
  const socket = join(await mkdtemp(join(directory, 'r-')), 'agent');
  const { said: output } = await record(socket);
  await Command.run(['-n', '1', 'env', `NCCLRUN_AGENT=${socket}`, program]);
  return output;
}

/** Where the kernel would keep another user out, somebody has opened what keeps it out. */
async function opened(path: string, talk: () => Promise<void>): Promise<void> {
  const isFile = !path.startsWith('\0');
  const places = isFile
    ? ([
        [dirname(path), 0o700],
        [path, 0o600],
      ] as const)
    : [];
  for (const [place] of places) chmodSync(place, 0o777);
  await talk();
  for (const [place, mode] of places) chmodSync(place, mode);
}

describe.each<[string, () => Promise<Victim>]>([
  ['the agent’s socket', ranksOfJob],
  ['a private agent’s socket', () => ranksOfShell(directory)],
])('%s', (_, makeVictim) => {
  let victim: Victim;
  beforeAll(async () => {
    victim = await makeVictim();
  });
  afterAll(() => victim.end());

  /** Answered with a refusal, or hung up on. */
  const isRefused = async (bytes: Uint8Array, what: string): Promise<void> => {
    const answers = await answersTo(victim.path, bytes);
    expect({ what, accepted: answers.filter((kind) => kind !== FrameKind.refused) }).toEqual({ what, accepted: [] });
  };

  it.each(noFrames)('the socket refuses $name', ({ name, bytes }) => isRefused(bytes, name));

  it.each(frameKinds)('the socket refuses a frame of kind %s without a hello', async (_name, kind) => {
    for (const { name, bytes } of framesOf(kind)) await isRefused(bytes, name);
  });

  it.each(frameKinds)('the socket refuses an invalid frame of kind %s after a hello', async (_name, kind) => {
    const hello = helloOf(victim.jobId);
    for (const { name, bytes } of framesOf(kind)) {
      if (kind === FrameKind.telemetry && name.startsWith('nothing')) continue; // that asks for one more page
      const [first, ...others] = await answersTo(victim.path, Buffer.concat([hello, bytes]));
      const accepted = others.filter((one) => one !== FrameKind.refused);
      expect({ name, first, accepted }).toEqual({ name, first: FrameKind.welcome, accepted: [] });
    }
    await victim.unharmed();
  });

  it('ranks continue after a hello that is truncated at any byte', async () => {
    for (const { bytes } of cuts(helloOf(victim.jobId))) await leaveAfter(victim.path, bytes);
    await victim.unharmed();
  });

  it('the socket refuses a hello of any wrong length', async () => {
    for (const { name, bytes } of lengths(helloOf(victim.jobId))) await isRefused(bytes, name);
  });

  it('the socket refuses a second hello', async () => {
    const hello = helloOf(victim.jobId);
    expect(await answersTo(victim.path, Buffer.concat([hello, hello]))).toEqual([FrameKind.welcome, FrameKind.refused]);
  });

  it('the socket refuses a hello of another job', () => isRefused(helloOf(OTHER_JOB), 'another job'));

  it('the socket refuses a hello of another version', () =>
    isRefused(helloOf(victim.jobId, BOOTSTRAP_PROTOCOL + 1), 'another version'));

  it('the socket refuses the replayed hello of an earlier job', async () => isRefused(await recordedHello(), 'replay'));

  it('ranks continue while many silent connections are open', async () => {
    const knocking = await Promise.all(Array.from({ length: KNOCKERS }, () => EngineClient.connect(victim.path)));
    await victim.unharmed();
    for (const client of knocking) client.close();
  });

  describeIf(notRoot, 'a process of another user', () => {
    it('the socket closes a connection of another user even if the file mode allows it', () =>
      opened(victim.path, async () => {
        expect(await repliesOf(NOBODY, victim.path, helloOf(victim.jobId))).toEqual(['closed']);
        expect(await repliesOf(ROOT, victim.path, helloOf(victim.jobId))).toEqual(['was answered', 'closed']);
      }));

    it('the file mode or the server keeps another user out', async () => {
      const says = await repliesOf(NOBODY, victim.path, helloOf(victim.jobId));
      expect(says).toEqual(victim.path.startsWith('\0') ? ['closed'] : ['may not', 'closed']);
    });
  });
});
