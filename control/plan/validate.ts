/** What a CommPlan must keep beyond its types. The engine checks the same of the bytes it is given (native/core/plan_view.cc). */
import { isIP } from 'node:net';
import { MAX_STEPS } from './layout.ts';
import type { CommPlan, ConnectionBuffer, Form, TuningRow } from './types.ts';

/** The plan cannot be carried out; the message names the place in it. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

const MAX_CHANNELS = 64;
const MAX_STEP_BYTES = 64 * 1024 * 1024;
/** Of one step; keeps every load and store of the engine aligned. */
const STEP_ALIGNMENT = 64;
const MAX_THREADS = 1024;

/** Throws a PlanError for the first thing that is wrong. */
export function validatePlan(plan: CommPlan): void {
  require(plan.peers.length > 0, 'peers: a communicator has at least one rank');
  require(plan.hosts.length > 0, 'hosts: a communicator has at least one host');
  validateHosts(plan);
  require(plan.channels.length > 0, 'channels: at least one is needed');
  require(plan.channels.length <=
    MAX_CHANNELS, `channels: ${plan.channels.length}, at most ${MAX_CHANNELS} are possible`);
  plan.channels.forEach((channel, index) => validateRing(channel.ring, plan.peers.length, index));
  validateBuffer('ringBuffer', plan.ringBuffer);
  validateBuffer('pairBuffer', plan.pairBuffer);
  require(plan.transports.otherHost !== 'shm' &&
    plan.transports.otherHost !==
      'p2p', `transports.otherHost: ${plan.transports.otherHost} does not reach another host`);
  require(Number.isSafeInteger(plan.spinNanoseconds) &&
    plan.spinNanoseconds >= 0, `spinNanoseconds: ${plan.spinNanoseconds} is no duration`);
  require(/^[0-9a-f]{32}$/.test(plan.token), 'token: expected 32 hexadecimal digits');
  validateTuning(plan.tuning, plan.channels.length);
}

function validateHosts(plan: CommPlan): void {
  const ranksOf = new Uint32Array(plan.hosts.length);
  plan.peers.forEach((peer, rank) => {
    require(peer.host in plan.hosts, `peers[${rank}].host: ${peer.host}, there are ${plan.hosts.length} hosts`);
    require(isPort(peer.listenPort), `peers[${rank}].listenPort: ${peer.listenPort} is no TCP port`);
    require(peer.listenPort !== 0 ||
      plan.hosts.length ===
        1, `peers[${rank}].listenPort: rank ${rank} on ${plan.hosts[peer.host]?.name} listens on no port, but ${plan.hosts.length} hosts take part`);
    ranksOf[peer.host] = (ranksOf[peer.host] ?? 0) + 1;
  });
  plan.hosts.forEach((host, index) => {
    require(host.name !== '', `hosts[${index}].name: is empty`);
    require(ranksOf[index] !== 0, `hosts[${index}]: ${host.name} has no rank`);
    require(plan.hosts.length === 1 ||
      isIP(host.address) !==
        0, `hosts[${index}].address: '${host.address}' of ${host.name} is no numeric IPv4 or IPv6 address`);
  });
}

function validateRing(ring: readonly number[], ranks: number, channel: number): void {
  require(ring.length === ranks, `channels[${channel}].ring: has ${ring.length} entries for ${ranks} ranks`);
  const seen = new Uint8Array(ranks);
  ring.forEach((rank, place) => {
    const at = `channels[${channel}].ring[${place}]`;
    require(Number.isInteger(rank) && rank >= 0 && rank < ranks, `${at}: ${rank} is no rank (0..${ranks - 1})`);
    require(seen[rank] === 0, `${at}: rank ${rank} comes twice`);
    seen[rank] = 1;
  });
}

function validateBuffer(name: string, buffer: ConnectionBuffer): void {
  const { steps, stepBytes } = buffer;
  require(Number.isInteger(steps) &&
    steps >= 1 &&
    steps <= MAX_STEPS, `${name}.steps: ${steps}, expected 1..${MAX_STEPS}`);
  require(Number.isInteger(stepBytes) &&
    stepBytes > 0 &&
    stepBytes % STEP_ALIGNMENT === 0 &&
    stepBytes <=
      MAX_STEP_BYTES, `${name}.stepBytes: ${stepBytes}, expected a multiple of ${STEP_ALIGNMENT} up to ${MAX_STEP_BYTES}`);
}

function validateTuning(rows: readonly TuningRow[], channels: number): void {
  const finished = new Set<string>();
  rows.forEach((row, index) => {
    const at = `tuning[${index}]`;
    const before = rows[index - 1];
    const first = before?.collective !== row.collective;
    require(!finished.has(
      row.collective,
    ), `${at}: rows of ${row.collective} must lie together, the last one without upToBytes`);
    if (row.upToBytes === null) finished.add(row.collective);
    else
      require(Number.isSafeInteger(row.upToBytes) &&
        row.upToBytes >= 0, `${at}.upToBytes: ${row.upToBytes} is no size`);
    require(first
      ? before === undefined || before.upToBytes === null
      : (before.upToBytes ?? 0) < (row.upToBytes ?? Infinity), first
      ? `tuning[${index - 1}].upToBytes: must be null, the last row of ${before?.collective} serves all larger sizes`
      : `${at}.upToBytes: ${row.upToBytes} after ${before.upToBytes}, sizes must rise`);
    require(row.forms.length > 0, `${at}.forms: at least one is needed`);
    row.forms.forEach((form, place) => validateForm(form, `${at}.forms[${place}]`, channels));
    require(row.forms.at(-1)?.requires.length ===
      0, `${at}.forms: the last one must need nothing, or a call could have none`);
  });
  const last = rows.at(-1);
  if (last !== undefined) {
    require(last.upToBytes ===
      null, `tuning[${rows.length - 1}].upToBytes: must be null, the last row of ${last.collective} serves all larger sizes`);
  }
}

function validateForm(form: Form, at: string, channels: number): void {
  require(Number.isInteger(form.channels) &&
    form.channels >= 1 &&
    form.channels <= channels, `${at}.channels: ${form.channels}, the plan has ${channels}`);
  require(Number.isSafeInteger(form.chunkBytes) &&
    form.chunkBytes >= 1, `${at}.chunkBytes: ${form.chunkBytes} is no size`);
  require(Number.isInteger(form.threads) &&
    form.threads >= 1 &&
    form.threads <= MAX_THREADS, `${at}.threads: ${form.threads}, expected 1..${MAX_THREADS}`);
  require(form.protocol !== 'simple' || form.threads >= 64, `${at}.threads: ${form.threads}, Simple needs 64 or more`);
  require(Number.isFinite(form.predictedMicroseconds) &&
    form.predictedMicroseconds >= 0, `${at}.predictedMicroseconds: ${form.predictedMicroseconds} is no time`);
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= 0xffff;
}

function require(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new PlanError(problem);
}
