/**
 * The launcher's end of its links to agents, attacked with everything that is no message in its place. Either the job takes no notice and ends
 * as it would have, or the host that has said it is given up, in one sentence that names it, and the job ends. Nothing else may happen: not a
 * job that is said to have ended well and whose ranks have not, none that goes on for ever, no exception.
 */
import { describe, expect, it } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { AgentHello } from '../../control/messages/link.ts';
import { failureText } from '../../launcher/report/failure-text.ts';
import { type Attack, cuts, framesOf, frameKinds, lengths, noFrames } from '../rig/attack/bytes.ts';
import { agentMessages } from '../rig/attack/messages.ts';
import { attackedJob, type Moment, moments } from '../rig/attack/job.ts';

async function survives(moment: Moment, { name, bytes }: Attack, hangsUp = false): Promise<void> {
  const { result, output } = await attackedJob(moment, (agent) => {
    agent.arrive(bytes);
    if (hangsUp) agent.hangUp();
  });
  const what = `${moment}: ${name}`;
  const mayWrite = name.endsWith('subject 0') && (moment === 'running' || moment === 'ending'); // its own rank
  expect({ what, output: mayWrite ? '' : output }).toEqual({ what, output: '' });
  if (result.ok) {
    const ended = result.ranks.map(({ exitCode }) => exitCode);
    expect({ what, ended, failures: result.failures }).toEqual({ what, ended: [0, 0], failures: [] });
    return;
  }
  const [primary] = result.failures;
  if (primary === undefined) throw new Error(`${what}: a job that failed without a failure`);
  expect({ what, host: 'host' in primary ? primary.host : primary }).toEqual({ what, host: 'h1' });
  const { sentence } = failureText(primary);
  expect(sentence, what).not.toMatch(/\n\s*at |undefined|\[object/);
  expect(sentence.length, what).toBeLessThan(500);
}

describe.each(moments)('while the job is %s', (moment) => {
  it.each(frameKinds)('the launcher survives or blames frames of kind %s', async (_name, kind: FrameKind) => {
    for (const attack of framesOf(kind)) await survives(moment, attack);
  });

  it.each(noFrames)('the launcher survives or blames $name', async (attack) => {
    await survives(moment, attack);
  });
});

describe('in place of an expected message', () => {
  it.each(agentMessages)('the launcher survives or blames foreign %s, once or twice', async (name, bytes) => {
    await survives('running', { name, bytes });
    await survives('running', { name, bytes: Buffer.concat([bytes, bytes]) });
  });

  it.each(agentMessages)('the launcher survives or blames %s of any wrong length', async (_name, bytes) => {
    for (const attack of lengths(bytes)) await survives('running', attack);
  });

  it.each(agentMessages)('the launcher survives or blames %s truncated at any byte', async (_name, bytes) => {
    for (const attack of cuts(bytes)) await survives('running', attack, true);
  });
});

it.each<[string, Partial<AgentHello>]>([
  ['of another job', { jobId: 'deadbeef0000' }],
  ['of another version', { version: '0.0.0' }],
])('the launcher names a host whose hello is %s', async (name, changes) => {
  const { result } = await attackedJob('connecting', (host) => host.hello(changes));
  expect(result, name).toMatchObject({ ok: false, failures: [{ type: 'agent', host: 'h1' }] });
});

it('a restart replaces an agent that falsely reports its ranks as ended', async () => {
  const ended = encodeFrame(makeFrame(FrameKind.ended));
  const { result, started } = await attackedJob('running', (agent) => agent.arrive(ended), ['--max-restarts', '1']);
  expect({ restarts: result.restarts, ok: result.ok }).toEqual({ restarts: 1, ok: true });
  expect(started).toEqual(['h1', 'h2', 'h1']);
});
