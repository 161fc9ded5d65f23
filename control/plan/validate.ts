/** What a CommPlan must keep beyond its types. The engine checks the same of the bytes it is given (native/plan/plan_view.cc). */
import { MAX_GPUS, MAX_STEPS } from './layout.ts';
import { familyOf } from './address-family.ts';
import { validateAggregators, validateNetwork } from './validate-network.ts';
import { validateRing, validateTree } from './validate-channels.ts';
import {
  canBeMessages,
  collnetForms,
  countByHost,
  hasRails,
  isCollnet,
  isVariantOf,
  TRANSPORTS_OF,
} from './possible.ts';
import type {
  AlgorithmName,
  CommPlan,
  ConnectionBuffer,
  DeviceName,
  TuningRow,
  Variant,
  WrittenPlan,
} from './types.ts';
import { check, checkWhole } from './plan-error.ts';
export { PlanError } from './plan-error.ts';

const MAX_CHANNELS = 256;
/** With one slot, sender and receiver could never work at the same time. */
const MIN_STEPS = 2;
const MAX_SPIN_NANOSECONDS = 1e9;
const MAX_CHUNK_BYTES = 2 ** 40;
const MIN_THREADS = 64;
const MAX_TIMEOUT_US = 1e9;
const MAX_STEP_BYTES = 64 * 1024 * 1024;
/** Of one step; keeps every load and store of the engine aligned. */
const STEP_ALIGNMENT = 64;
const MAX_THREADS = 4096;

/** Throws a PlanError for the first thing that is wrong. A ring that a person wrote may come to a host twice: bindPlan mends it. */
export function validatePlan(plan: WrittenPlan & Partial<Pick<CommPlan, 'aggregators'>>, isBound = true): void {
  const { peers, hosts, channels, spinNanoseconds, token, aggregators } = plan;
  check(peers.length > 0, 'peers: a communicator has at least one rank');
  check(hosts.length > 0, 'hosts: a communicator has at least one host');
  validateHosts(plan);
  check(channels.length > 0, 'channels: at least one is needed');
  check(channels.length <= MAX_CHANNELS, `channels: ${channels.length}, at most ${MAX_CHANNELS} are possible`);
  const hostOf = isBound ? (rank: number) => peers[rank]?.host ?? 0 : () => 0;
  const seen = new Set<readonly number[]>();
  for (const [index, { ring, tree }] of channels.entries()) {
    if (!seen.has(ring)) validateRing(ring, peers.length, hostOf, index);
    if (tree !== null && !seen.has(tree)) validateTree(tree, peers.length, hostOf, index);
    seen.add(ring);
    if (tree !== null) seen.add(tree);
  }
  validateBuffer('ringBuffer', plan.ringBuffer);
  validateBuffer('pairBuffer', plan.pairBuffer);
  if (plan.device === 'cuda') validateGpuBuffers(plan);
  validateTransports(plan);
  validateNetwork(plan, isBound);
  checkWhole('smsPerLaunch', plan.smsPerLaunch, 1, channels.length);
  checkWhole('copyChannels', plan.copyChannels, 1, plan.smsPerLaunch);
  for (const [name, value] of Object.entries(plan.copyTimeouts))
    checkWhole(`copyTimeouts.${name}`, value, 0, MAX_TIMEOUT_US);
  checkWhole('spinNanoseconds', spinNanoseconds, 0, MAX_SPIN_NANOSECONDS);
  check(/^[0-9a-f]{32}$/.test(token), 'token: expected 32 hexadecimal digits');
  validateTuning(plan.tuning, channels.length, plan.device);
  if (!isBound) return;
  validateRails(plan);
  validateCollnet(plan);
  if (aggregators != null) validateAggregators(aggregators);
}

function validateTransports({ device, transports }: WrittenPlan): void {
  for (const where of ['sameHost', 'otherHost'] as const) {
    const possible = TRANSPORTS_OF[device][where];
    const between = where === 'sameHost' ? 'one host' : 'different hosts';
    check(
      possible.includes(transports[where]),
      `transports.${where}: ${transports[where]}; between ranks of ${between} the ${device} device has ${possible.join(' and ')}`,
    );
  }
}

function validateHosts({ peers, hosts }: WrittenPlan): void {
  const ranksOf = new Uint32Array(hosts.length);
  for (const [rank, peer] of peers.entries()) {
    const host = hosts[peer.host];
    const at = `peers[${rank}]`;
    check(host !== undefined, `${at}.host: ${peer.host}, there are ${hosts.length} hosts`);
    checkWhole(`${at}.listenPort`, peer.listenPort, 0, 0xffff);
    const reachable = peer.listenPort !== 0 || hosts.length === 1;
    check(
      reachable,
      `${at}.listenPort: rank ${rank} on ${host?.name} listens on no port, but ${hosts.length} hosts take part`,
    );
    ranksOf[peer.host] = (ranksOf[peer.host] ?? 0) + 1;
  }
  for (const [index, { name, address }] of hosts.entries()) {
    check(name !== '', `hosts[${index}].name: is empty`);
    check(ranksOf[index] !== 0, `hosts[${index}]: ${name} has no rank`);
    const numeric = hosts.length === 1 || familyOf(address) !== 0;
    check(numeric, `hosts[${index}].address: '${address}' of ${name} is no numeric IPv4 or IPv6 address`);
  }
}

function validateBuffer(name: string, { steps, stepBytes }: ConnectionBuffer): void {
  checkWhole(`${name}.steps`, steps, MIN_STEPS, MAX_STEPS);
  checkWhole(`${name}.stepBytes`, stepBytes, STEP_ALIGNMENT, MAX_STEP_BYTES);
  check(stepBytes % STEP_ALIGNMENT === 0, `${name}.stepBytes: ${stepBytes} is no multiple of ${STEP_ALIGNMENT}`);
}

/** Minimum number of LL and LL128 slots: the receiver grants credit for halves of them, and a rank has three in flight to its ring neighbour. */
const MIN_LINE_STEPS = 4;
const GPU_STEP_ALIGNMENT = 128;

function validateGpuBuffers({ ringBuffer, pairBuffer, gpuBuffers, channels }: WrittenPlan): void {
  check(gpuBuffers !== null, 'gpuBuffers: is missing; a plan for GPUs needs it');
  if (gpuBuffers === null) return;
  const { wideChannels, pairChannels, narrowStepBytes, lineSteps, llStepBytes, ll128StepBytes } = gpuBuffers;
  checkWhole('gpuBuffers.wideChannels', wideChannels, 0, channels.length);
  checkWhole('gpuBuffers.pairChannels', pairChannels, 1, channels.length);
  checkWhole('gpuBuffers.lineSteps', lineSteps, MIN_LINE_STEPS, MAX_STEPS);
  const steps = { 'ringBuffer.steps': ringBuffer.steps, 'pairBuffer.steps': pairBuffer.steps, lineSteps };
  for (const [name, value] of Object.entries(steps))
    check(Number.isInteger(Math.log2(value)), `${name}: ${value} is no power of two, which GPUs need`);
  const sizes = {
    'ringBuffer.stepBytes': ringBuffer.stepBytes,
    'pairBuffer.stepBytes': pairBuffer.stepBytes,
    narrowStepBytes,
    llStepBytes,
    ll128StepBytes,
  };
  for (const [name, value] of Object.entries(sizes)) {
    checkWhole(name, value, GPU_STEP_ALIGNMENT, MAX_STEP_BYTES);
    check(value % GPU_STEP_ALIGNMENT === 0, `${name}: ${value} is no multiple of ${GPU_STEP_ALIGNMENT}`);
  }
}

function validateTuning(rows: readonly TuningRow[], channels: number, device: DeviceName): void {
  const finished = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const at = `tuning[${index}]`;
    const { collective, upToBytes, variants } = row;
    const before = rows[index - 1];
    check(!finished.has(collective), `${at}: ${collective} has a row without upToBytes before, which must be its last`);
    if (upToBytes === null) finished.add(collective);
    else checkWhole(`${at}.upToBytes`, upToBytes, 0, Number.MAX_SAFE_INTEGER);
    if (before?.collective === collective) {
      const rises = upToBytes === null || (before.upToBytes ?? 0) < upToBytes;
      check(rises, `${at}.upToBytes: ${upToBytes} after ${before.upToBytes}, sizes must rise`);
    }
    const goesOn = upToBytes === null || rows[index + 1]?.collective === collective;
    check(goesOn, `${at}.upToBytes: must be null, the last row of ${collective} serves all larger sizes`);
    for (const [variantIndex, variant] of variants.entries()) {
      validateVariant(variant, `${at}.variants[${variantIndex}]`, channels);
      const described = `algorithm ${variant.algorithm} with protocol ${variant.protocol}${whichRequires(variant)}`;
      const isPossible = isVariantOf(device, collective, variant);
      check(
        !variant.asMessages || canBeMessages(device, collective, variant),
        `${at}.variants[${variantIndex}].asMessages: only allToAll, allGather and broadcast on GPUs by directOneShot with simple can be`,
      );
      check(
        isPossible,
        `${at}.variants[${variantIndex}]: ${described} for ${collective}, which the ${device} device does not have`,
      );
    }
    const always = variants.at(-1)?.requires.length === 0;
    check(always, `${at}.variants: the last one must need nothing, or a call could have none`);
  }
}

function validateCollnet({ peers, hosts, tuning }: WrittenPlan): void {
  const forms = collnetForms(countByHost(peers, hosts.length));
  const used = new Set<AlgorithmName>();
  for (const [index, { variants }] of tuning.entries()) {
    for (const { algorithm } of variants) {
      if (!isCollnet(algorithm)) continue;
      const needs = algorithm === 'collnet' ? 'several hosts with equally many ranks' : 'several hosts';
      check(forms.includes(algorithm), `tuning[${index}]: algorithm ${algorithm} needs ${needs}`);
      used.add(algorithm);
      check(used.size === 1, `tuning[${index}]: a plan can have collnet or collnetChain, not both`);
    }
  }
}

function validateRails({ device, peers, hosts, tuning }: WrittenPlan): void {
  if (hasRails(device, countByHost(peers, hosts.length))) return;
  const index = tuning.findIndex(({ variants }) => variants.some(({ algorithm }) => algorithm === 'rail'));
  check(
    index === -1,
    `tuning[${index}]: algorithm rail needs several hosts with equally many ranks, two at least` +
      (device === 'cuda' ? `, and no more than ${MAX_GPUS} connections of a rank` : ''),
  );
}

function whichRequires({ algorithm, requires }: Variant): string {
  const lacksAddresses = algorithm === 'copyEngine' && !requires.includes('publishedAddresses');
  if (isCollnet(algorithm) && !requires.includes('networkReduction')) return ' that does not require networkReduction';
  return lacksAddresses ? ' that does not require publishedAddresses' : '';
}

function validateVariant(variant: Variant, at: string, channels: number): void {
  checkWhole(`${at}.channels`, variant.channels, 1, channels);
  checkWhole(`${at}.chunkBytes`, variant.chunkBytes, 1, MAX_CHUNK_BYTES);
  checkWhole(`${at}.threads`, variant.threads, MIN_THREADS, MAX_THREADS);
  for (const name of ['predictedMicroseconds', 'predictedMicrosecondsPerMebibyte'] as const)
    check(Number.isFinite(variant[name]) && variant[name] >= 0, `${at}.${name}: ${variant[name]} is no time`);
}
