/** What no plan can mend: the ranks' devices contradict each other. */
import type { PlanInput, PlannedPeer } from './input.ts';

/** The ranks as they are cannot form a communicator; the engine answers ncclInvalidUsage with this sentence. */
export class UnplannableError extends Error {
  override readonly name = 'UnplannableError';
}

/** `gpusShared`: several ranks may use one GPU. */
export function checkDevices(input: PlanInput, gpusShared = false): void {
  const gpus = new Map<string, number>();
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
    const other = gpus.get(gpu);
    if (other !== undefined) {
      throw new UnplannableError(
        `duplicate GPU: ranks ${other} and ${rank} both use the GPU with bus id ${peer.busId} (device ${peer.cudaDevice}) of ${hostOf(input, peer)}; ` +
          'with NCCL_MULTI_RANK_GPU_ENABLE=1 they share it',
      );
    }
    gpus.set(gpu, rank);
  });
}

function hostOf(input: PlanInput, peer: PlannedPeer): string {
  return input.hosts[peer.host]?.name ?? `host ${peer.host}`;
}
