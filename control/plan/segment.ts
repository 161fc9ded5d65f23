/** What lies where in a host segment: the shared memory of one communicator on one host (native/plan/segment_format.h). */
import {
  ABORT_BLOCK_BYTES,
  AGREEMENT_RECORD_BYTES,
  AGREEMENTS,
  CONNECTION_ALIGNMENT,
  CONNECTION_HEADER_BYTES,
  COPY_WORDS_BYTES,
  DEVICE_RECORD_BYTES,
  DOORBELL_BYTES,
  LL_STEP_BYTES,
  LL_STEPS,
  NODE_BARRIER_BYTES,
} from './layout.ts';
import { gpuPlanOf, pairBytes, ringBytes } from './gpu-memory.ts';
import type { CommPlan, ConnectionBuffer } from './types.ts';

/** Offsets and sizes in bytes. */
export interface SegmentLayout {
  readonly abortOffset: number;
  readonly doorbellOffset: number;
  readonly barrierOffset: number;
  /** The pair connection from local rank i to local rank j lies at pairOffset + (i * localRanks + j) * pairStride. */
  readonly pairOffset: number;
  readonly pairStride: number;
  /** Ring connection k of this host lies at ringOffset + k * ringStride. */
  readonly ringOffset: number;
  readonly ringStride: number;
  readonly totalBytes: number;
}

/** Pages that nobody touches cost nothing, so every pair has its slots from the start. `sharedRings`: ring edges inside the host. */
export function layOutSegment(plan: CommPlan, localRanks: number, sharedRings: number): SegmentLayout {
  const doorbellOffset = ABORT_BLOCK_BYTES;
  const barrierOffset = doorbellOffset + localRanks * DOORBELL_BYTES;
  const onGpus = plan.device === 'cuda';
  const pairRecordBytes = COPY_WORDS_BYTES + AGREEMENTS * AGREEMENT_RECORD_BYTES;
  const recordBytes = onGpus ? localRanks * (DEVICE_RECORD_BYTES + localRanks * pairRecordBytes) : 0;
  const pairOffset = roundUp(barrierOffset + NODE_BARRIER_BYTES + recordBytes, CONNECTION_ALIGNMENT);
  // GPUs that turn out not to reach each other's memory use this one.
  const gpus = gpuPlanOf(plan);
  // The slots of the pair (j, j) hold j's part of the rings.
  const pairStride = gpus === null ? connectionBytes(plan.pairBuffer) : Math.max(pairBytes(gpus), ringBytes(gpus));
  const pairs = onGpus || plan.transports.sameHost === 'shm' ? localRanks * localRanks : 0;
  const ringOffset = pairOffset + pairs * pairStride;
  const ringStride = connectionBytes(plan.ringBuffer);
  const totalBytes = ringOffset + sharedRings * ringStride;
  if (!Number.isSafeInteger(totalBytes)) {
    throw new RangeError(`the shared memory of ${localRanks} ranks of one host would have ${totalBytes} bytes`);
  }
  return { abortOffset: 0, doorbellOffset, barrierOffset, pairOffset, pairStride, ringOffset, ringStride, totalBytes };
}

const CACHE_LINE_BYTES = 64;

export function connectionBytes(buffer: ConnectionBuffer): number {
  const slots = roundUp(CONNECTION_HEADER_BYTES + buffer.steps * buffer.stepBytes, CACHE_LINE_BYTES);
  return roundUp(slots + LL_STEPS * LL_STEP_BYTES, CONNECTION_ALIGNMENT);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
