/**
 * An agent's own streams, attacked from the launcher's end, and the invitation that Slurm brings it. The agent may take no notice or end with a
 * sentence; when its launcher is gone it ends, and so does its rank.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, describe, it } from 'vitest';
import { encodeFrame, encodeJson, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import { decodeSpawned } from '../../control/messages/payload.ts';
import { makeUniqueId } from '../../control/rendezvous/unique-id.ts';
import { installedVersion } from '../../launcher/local/host.ts';
import { type Attack, cuts, framesOf, frameKinds, lengths, noFrames } from '../rig/attack/bytes.ts';
import { repository } from '../rig/cluster.ts';
import { alive } from '../rig/processes.ts';
import { until } from '../rig/until.ts';
import { sample, sampleSize } from '../rig/whole.ts';

const AGENT = join(repository, 'bin/ncclrun-agent');
/** Cuts and lengths that are tried of an order: each takes the start of an agent. */
const SAMPLES = sampleSize(12, 4);

const program = { argv: ['/bin/sleep', '1000'], workingDirectory: '/', workingDirectoryGiven: true, environment: {} };
const rank = { rank: 0, program: 0, stdinPipe: false, interactive: false, mergeStderr: false, cpus: [] };
const order: AgentOrder = {
  schemaVersion: 1,
  version: installedVersion(),
  jobId: 'attacked',
  epoch: 0,
  maxRestarts: 0,
  stays: false,
  uniqueId: makeUniqueId('attacked').toString('base64'),
  leaseMs: 60_000,
  heartbeatMs: 10_000,
  outputCredit: 1000,
  plansLocally: true,
  installation: repository,
  topology: false,
  interfaces: null,
  addressFamily: null,
  verbs: true,
  hangAfterMs: 0,
  preload: false,
  portRange: null,
  busyGpus: 'report',
  outerJob: null,
  hostName: 'here',
  placement: {
    hostIndex: 0,
    hostCount: 2,
    rankCount: 2,
    programs: [program],
    ranks: [{ ...rank, gpu: null, visibleGpus: null }],
  },
};
const orderFrame = encodeFrame(makeFrame(FrameKind.order, { payload: encodeJson(order) }));
const start = encodeFrame(makeFrame(FrameKind.start, { payload: encodeJson({ placement: null, environment: {} }) }));

/** An agent as a remote shell starts it. */
class StartedAgent {
  readonly #process: ChildProcess;
  readonly #closed: Promise<unknown>;
  stderr = '';
  /** Of its rank; null before it runs. */
  pid: number | null = null;
  ends = false;

  constructor(...argv: string[]) {
    this.#process = spawn(AGENT, argv, { stdio: 'pipe' });
    this.#closed = once(this.#process, 'close').then(() => (this.ends = true));
    const decoder = new FrameDecoder(({ kind, payload }) => {
      if (kind === FrameKind.spawned) this.pid = decodeSpawned(payload).pid;
    });
    this.#process.stdout?.on('data', (chunk: Buffer) => decoder.push(chunk));
    this.#process.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.#process.stdin?.on('error', () => undefined); // it has left
  }

  hear(bytes: Uint8Array): void {
    this.#process.stdin?.write(bytes);
  }

  /** Its exit status, once the launcher has hung up. */
  async end(): Promise<number | null> {
    this.#process.stdin?.end();
    await this.#closed;
    return this.#process.exitCode;
  }
}

async function survives({ name, bytes }: Attack, hasRank: boolean, ...argv: string[]): Promise<void> {
  const agent = new StartedAgent(...argv);
  if (hasRank) {
    agent.hear(Buffer.concat([orderFrame, start]));
    await until('the rank runs', () => agent.pid !== null);
  }
  agent.hear(bytes);
  const status = await agent.end();
  const { stderr, pid } = agent;
  expect({ name, status, stderr }).toEqual({
    name,
    status: expect.toBeOneOf(hasRank ? [0, 125] : [125]),
    stderr: expect.stringMatching(hasRank ? /^(ncclrun[^\n]*\n)*$/ : /^(ncclrun[^\n]*\n)+$/),
  });
  if (hasRank && pid !== null) await until('its rank is gone', () => !alive(pid));
}

const sampled = (attacks: readonly Attack[]): Attack[] =>
  attacks.filter((_, index) => index % Math.ceil(attacks.length / SAMPLES) === 0);
/** Of all that may be said in a kind of frame: what parses least, and what parses most. */
const some = (kind: FrameKind): Attack[] => framesOf(kind).filter((_, index) => index === 4 || index === 7);

describe('an agent that waits for its order', () => {
  it.each(sample(frameKinds, 4))('the agent survives or rejects a frame of kind %s', async (_name, kind) => {
    for (const attack of some(kind).slice(0, 1)) await survives(attack, false);
  });

  it.each(noFrames)('the agent survives or rejects $name', (attack) => survives(attack, false));

  it.each([...framesOf(FrameKind.order), ...sampled(cuts(orderFrame)), ...sampled(lengths(orderFrame)).slice(0, -1)])(
    'the agent survives or rejects an order of $name',
    (attack) => survives(attack, false),
  );
});

describe('an agent with a rank', () => {
  it.each(sample(frameKinds, 4))('the agent survives or rejects frames of kind %s', async (_name, kind) => {
    for (const attack of some(kind)) await survives(attack, true);
  });

  it.each(noFrames)('the agent survives or rejects $name', (attack) => survives(attack, true));

  it('the agent survives or rejects a second order', () => survives({ name: 'order', bytes: orderFrame }, true));

  it('the agent survives or rejects a second start', () => survives({ name: 'start', bytes: start }, true));
});

describe('an agent that waits for an invitation', () => {
  it.each([...some(FrameKind.order), ...framesOf(FrameKind.invitation), ...noFrames])(
    'the agent survives or rejects $name',
    (attack) => survives(attack, false, 'invited'),
  );
});
