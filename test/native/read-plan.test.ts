/** The engine's reader of plans (native/plan/plan_view) reads what control/plan writes: thousands of facts, compared one by one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { cardNumber, GPU_DIRECT_VERDICTS } from '../../control/plan/gpu-nics.ts';
import { gpuMemoryOf, gpuPlanOf } from '../../control/plan/gpu-memory.ts';
import { nicNumber } from '../../control/plan/network.ts';
import {
  ALGORITHMS,
  COLLECTIVES,
  DEVICES,
  EDGE_KINDS,
  PRECONDITIONS,
  PROTOCOLS,
  TRANSPORTS,
} from '../../control/plan/layout.ts';
import { isVariantOf, TRANSPORTS_OF } from '../../control/plan/possible.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { repository } from '../rig/cluster.ts';
import { gpuPlan, randomPlan, samplePlan } from '../rig/plans.ts';
import { seededRandom } from '../rig/random.ts';
import { writeHostPlans } from '../rig/write-plan.ts';

const PLANS = 40;
let directory = '';
let reader = '';

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-plans-'));
  reader = join(directory, 'read_plan');
  const sources = [
    'test/tools/read_plan.cc',
    'cuda/cuda_memory_use.cc',
    'plan/plan_view.cc',
    'plan/plan_view_channels.cc',
    'plan/plan_view_edges.cc',
    'plan/plan_view_network.cc',
    'plan/plan_view_tuning.cc',
    'plan/variants.cc',
    'base/error.cc',
    'base/fork.cc',
  ];
  const options = ['-std=c++20', '-Wall', '-Wextra', '-Werror', '-I.', '-Iinclude', '-o', reader];
  execFileSync('c++', [...options, ...sources], { cwd: join(repository, 'native') });
});

afterAll(() => rmSync(directory, { recursive: true }));

it('the engine reads every plan with the values that control/plan wrote', () => {
  const random = seededRandom(21);
  const gpus = [1, 2, 3, 4, 8, 16].map((ranks) => gpuPlan(ranks));
  const plans = [samplePlan(), ...gpus, ...Array.from({ length: PLANS }, () => randomPlan(random))];
  for (const [index, plan] of plans.entries()) {
    const paths = writeHostPlans(plan, join(directory, String(index)));
    const read = spawnSync(reader, paths, { encoding: 'utf8' });
    expect(read.stderr).toBe('');
    expect(read.stdout.split('\n')).toEqual([...paths.flatMap((path) => factsOf(readFileSync(path))), '']);
  }
});

it('the engine rejects damaged plans with a message or reads them without crashing', () => {
  const random = seededRandom(22);
  const [path = ''] = writeHostPlans(samplePlan(), join(directory, 'damaged'));
  const whole = readFileSync(path);
  for (let round = 0; round < 100; round++) {
    const damaged = Buffer.from(whole.subarray(0, random(4) === 0 ? random(whole.length) : whole.length));
    if (damaged.length > 0) damaged[random(damaged.length)] = random(256);
    writeFileSync(path, damaged);
    const { status, stderr } = spawnSync(reader, [path], { encoding: 'utf8' });
    expect([0, 1]).toContain(status);
    if (status === 1) expect(stderr).toMatch(/: the plan .+\n$/);
  }
});

it('the engine has the variants and transports that control/plan checks against', () => {
  const preconditions = [[], ['publishedAddresses'], ['networkReduction']] as const;
  const expected = DEVICES.flatMap((device, number) => [
    ...COLLECTIVES.flatMap((collective, at) =>
      ALGORITHMS.flatMap((algorithm, algorithmIndex) =>
        PROTOCOLS.flatMap((protocol, protocolIndex) =>
          preconditions.map((requires) => {
            const bits = requires.reduce((sum, one) => sum | (1 << PRECONDITIONS.indexOf(one)), 0);
            const has = isVariantOf(device, collective, { algorithm, protocol, requires: [...requires] });
            return `variant ${number} ${at} ${algorithmIndex} ${protocolIndex} ${bits} ${has ? 1 : 0}`;
          }),
        ),
      ),
    ),
    ...TRANSPORTS.map((transport, at) => {
      const { sameHost, otherHost } = TRANSPORTS_OF[device];
      return `transport ${number} ${at} ${Number(sameHost.includes(transport))} ${Number(otherHost.includes(transport))}`;
    }),
  ]);
  const { stdout } = spawnSync(reader, ['--variants'], { encoding: 'utf8' });
  expect(stdout.trimEnd().split('\n')).toEqual(expected);
});

function gpuFactsOf(plan: CommPlan): string[] {
  const gpus = gpuPlanOf(plan);
  if (gpus === null) return [];
  const { wideChannels, narrowStepBytes, lineSteps, llStepBytes, ll128StepBytes } = gpus.gpuBuffers;
  const { total, rings, ll, ll128, simple, counters, tables } = gpuMemoryOf(gpus);
  return [
    `gpus ${wideChannels} ${narrowStepBytes} ${lineSteps} ${llStepBytes} ${ll128StepBytes}`,
    `memory ${total} ${rings} ${ll} ${ll128} ${simple} ${counters} ${tables}`,
  ];
}

/** In the words of native/test/tools/read_plan.cc. */
function factsOf(bytes: Uint8Array): string[] {
  const { plan, hostIndex, locals, segment } = decodeHostPlan(bytes);
  const { peers, hosts, channels, ringBuffer, pairBuffer, transports, tuning } = plan;
  const seen = hosts.map(() => 0);
  const numbers = Object.values(segment).join(' ');
  return [
    `header ${peers.length} ${hosts.length} ${hostIndex} ${locals.length} ${channels.length}`,
    `buffers ${ringBuffer.steps} ${ringBuffer.stepBytes} ${pairBuffer.steps} ${pairBuffer.stepBytes}`,
    `transports ${TRANSPORTS.indexOf(transports.sameHost)} ${TRANSPORTS.indexOf(transports.otherHost)}`,
    `sockets ${plan.network?.sockets ?? 1} ${plan.network?.socketThreads ?? 0}`,
    `spin ${plan.spinNanoseconds}`,
    `launch ${plan.smsPerLaunch} ${Object.values(plan.copyTimeouts).join(' ')}`,
    `token ${plan.token}`,
    `segment ${numbers}`,
    ...gpuFactsOf(plan),
    ...hosts.flatMap(({ name, address, nics }) => [
      `host ${name} ${address}`,
      ...nics.map((nic) => `nic ${nic.name} ${nic.address} ${nic.speedMbps} ${nic.port} ${nic.gpuDirect ? 1 : 0}`),
    ]),
    ...(hosts[hostIndex]?.gpuNics ?? []).map(({ local, card, path, receives, sends }) => {
      const verdicts = [receives, sends].map((verdict) => GPU_DIRECT_VERDICTS.indexOf(verdict));
      return `gpu-nic ${local} ${card === null ? 2n ** 64n - 1n : cardNumber(card)} ${path} ${verdicts.join(' ')}`;
    }),
    ...(plan.aggregators?.servers ?? []).map(({ address, port }) => `aggregator ${address} ${port}`),
    `network ${plan.network?.name ?? ''}`,
    ...peers.map(({ host, listenPort, pairNic }) => {
      const localIndex = seen[host] ?? 0;
      seen[host] = localIndex + 1;
      return `peer ${host} ${localIndex} ${listenPort} ${nicNumber(pairNic)}`;
    }),
    ...channels.flatMap(({ ring, tree }) => [
      `ring ${ring.join(' ')}`,
      `parents ${tree.map((parent, rank) => (parent === rank ? -1 : parent)).join(' ')}`,
    ]),
    ...locals.flatMap(({ rank, edges }) => [
      `local ${rank}`,
      ...edges.map(
        ({ kind, channel, peer, transport, sends, nic, peerNic, gpuDirect, slots, segmentOffset }) =>
          `edge ${EDGE_KINDS.indexOf(kind)} ${channel} ${peer} ${TRANSPORTS.indexOf(transport)} ${Number(sends)} ${nicNumber(nic)} ` +
          `${nicNumber(peerNic)} ${Number(gpuDirect)} ${slots.steps} ${slots.stepBytes} ${segmentOffset}`,
      ),
    ]),
    ...tuning.flatMap(({ collective, upToBytes, variants }) => [
      `tuning ${COLLECTIVES.indexOf(collective)} ${upToBytes ?? 2n ** 64n - 1n}`,
      ...variants.map((variant) => {
        const bits = variant.requires.reduce((mask, name) => mask | (1 << PRECONDITIONS.indexOf(name)), 0);
        const kind = `${ALGORITHMS.indexOf(variant.algorithm)} ${PROTOCOLS.indexOf(variant.protocol)}`;
        const times = `${variant.predictedMicroseconds} ${variant.predictedMicrosecondsPerMebibyte}`;
        return `variant ${kind} ${variant.channels} ${variant.threads} ${variant.chunkBytes} ${bits} ${variant.asMessages ? 1 : 0} ${times}`;
      }),
    ]),
  ];
}
