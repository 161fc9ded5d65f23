/** What no plan can mend: the ranks' devices contradict each other. */
import { isVariantBetweenGpuHosts } from '../../plan/possible.ts';
import { MAX_GPUS } from '../../plan/layout.ts';
import { rankCountByGpu } from './input.ts';
import type { GivenPlan, PlanInput, PlannedPeer } from './input.ts';

/** The ranks as they are cannot form a communicator; the engine answers ncclInvalidUsage with this sentence. */
export class UnplannableError extends Error {
  override readonly name = 'UnplannableError';
}

/** `gpusShared`: several ranks may use one GPU. */
export function checkDevices(input: PlanInput, gpusShared = false): void {
  const gpus = new Map<string, number[]>();
  input.peers.forEach((peer, rank) => {
    const [first] = input.peers;
    if (first !== undefined && first.device !== peer.device) {
      throw new UnplannableError(
        `rank 0 (${hostOf(input, first)}) uses the ${first.device} device, rank ${rank} (${hostOf(input, peer)}) the ${peer.device} device: ` +
          'one communicator has one kind (NCCLRUN_DEVICE)',
      );
    }
    if (peer.device === 'host' || gpusShared) return;
    const gpu = `${peer.host}:${peer.busId}`;
    const others = gpus.get(gpu) ?? [];
    const [other] = others;
    const parts = input.hosts[peer.host]?.machine?.gpusAt?.(peer.busId) ?? 1;
    if (other !== undefined && others.length >= parts) {
      throw new UnplannableError(
        `duplicate GPU: ranks ${other} and ${rank} both use the GPU with bus id ${peer.busId} (device ${peer.cudaDevice}) of ${hostOf(input, peer)}; ` +
          'with NCCL_MULTI_RANK_GPU_ENABLE=1 they share it',
      );
    }
    gpus.set(gpu, [...others, rank]);
  });
}

/** Whether the ranks as they are can carry out a plan that was written beforehand. validate.ts has checked the plan by itself. */
export function checkGiven({ source, plan }: GivenPlan, input: PlanInput): void {
  input.peers.forEach((peer, rank) => {
    if (peer.device === plan.device) return;
    throw new UnplannableError(
      `the plan in ${source} is for the ${plan.device} device, rank ${rank} (${hostOf(input, peer)}) uses the ${peer.device} device: give a plan ` +
        `for the ${peer.device} device, set NCCLRUN_DEVICE=${plan.device}, or leave --plan out`,
    );
  });
  if (plan.device === 'host') return;
  if (input.hosts.length > 1) checkBetweenGpuHosts(source, plan);
  checkGpuCount(input);
  // Blocks wait for each other across GPUs: all of a launch have to be resident on SMs at once.
  const ranksOf = rankCountByGpu(input.peers);
  input.peers.forEach(({ host, busId, smCount }, rank) => {
    const sharing = ranksOf.get(busId) ?? 1;
    const max = Math.floor(smCount / sharing);
    if (plan.channels.length <= max) return;
    const shared = sharing === 1 ? '' : `, which ${sharing} ranks share`;
    throw new UnplannableError(
      `the plan in ${source} has ${plan.channels.length} channels, one SM each, and the GPU of rank ${rank} ` +
        `(${input.hosts[host]?.name}) has ${smCount}${shared}: give a plan of at most ${max} channels, or leave --plan out`,
    );
  });
}

function checkBetweenGpuHosts(source: string, { tuning, peers, gpuBuffers }: GivenPlan['plan']): void {
  const gpuHosts = { ranks: peers.length, pairChannels: gpuBuffers?.pairChannels ?? 0 };
  for (const { collective, variants } of tuning) {
    const wrong = variants.find((variant) => !isVariantBetweenGpuHosts(collective, variant, gpuHosts));
    if (wrong === undefined) continue;
    throw new UnplannableError(
      `the plan in ${source} has algorithm ${wrong.algorithm} with protocol ${wrong.protocol} on ${wrong.channels} channels for ` +
        `${collective}, which ${peers.length} GPUs of several hosts do not have: leave --plan out`,
    );
  }
}

/** Throws UnplannableError for more GPUs of one host than the engine connects. */
export function checkGpuCount({ hosts, peers }: PlanInput): void {
  for (const [index, { name }] of hosts.entries()) {
    const count = peers.filter(({ host }) => host === index).length;
    if (count <= MAX_GPUS) continue;
    throw new UnplannableError(
      `the communicator has ${count} GPUs on ${name}: this version connects at most ${MAX_GPUS} of one host; use ` +
        'NCCLRUN_DEVICE=host with buffers in ordinary memory',
    );
  }
}

function hostOf(input: PlanInput, peer: PlannedPeer): string {
  return input.hosts[peer.host]?.name ?? `host ${peer.host}`;
}
