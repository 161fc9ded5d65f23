/** What a communicator takes of a GPU's memory: from the plan alone, the twin of native/cuda/cuda_memory_use.cc. */
import {
  GPU_STATE_BYTES,
  LAUNCH_ITEMS,
  NET_HEADER_BYTES,
  PAGE_BYTES,
  RECORDED_COUNT_BYTES,
  REGION_HEADER_BYTES,
  RING_ENTRY_BYTES,
  RING_POSITION_BYTES,
} from './layout.ts';
import { countByHost } from './possible.ts';
import type { CommPlan, GpuBuffers } from './types.ts';

export type GpuPlan = Pick<CommPlan, 'ringBuffer' | 'pairBuffer'> & {
  readonly channels: number;
  readonly ranks: number;
  readonly hosts: number;
  /** Of the host that has most of them: slots between hosts are memory of the host. */
  readonly localRanks: number;
  readonly gpuBuffers: GpuBuffers;
};

/** Bytes of one rank, by purpose. */
export interface PlannedGpuMemory {
  readonly total: number;
  /** Slots of rings, under protocol Simple. */
  readonly rings: number;
  /** Slots between pairs, by protocol. */
  readonly ll: number;
  readonly ll128: number;
  readonly simple: number;
  /** What lies before the slots, and what fills the last pages. */
  readonly counters: number;
  /** States of connections and the orders of the rings and hosts. */
  readonly tables: number;
}

/** null: on the host device. */
export function gpuPlanOf(plan: CommPlan): GpuPlan | null {
  const { ringBuffer, pairBuffer, gpuBuffers, channels, peers, hosts } = plan;
  if (plan.device !== 'cuda' || gpuBuffers === null) return null;
  return {
    ringBuffer,
    pairBuffer,
    gpuBuffers,
    channels: channels.length,
    ranks: peers.length,
    hosts: hosts.length,
    localRanks: countByHost(peers, hosts.length).maxRanks,
  };
}

/** In front of the payload of each slot of protocol Simple: what the proxies send with it. */
function slotHeaderBytes({ hosts }: GpuPlan): number {
  return hosts > 1 ? NET_HEADER_BYTES : 0;
}

/** Two ranks' rings use the slots of the pair. */
function hasRingsApart({ ranks }: GpuPlan): boolean {
  return ranks > 2;
}

export function gpuMemoryOf(plan: GpuPlan): PlannedGpuMemory {
  const { ringBuffer, pairBuffer, gpuBuffers, channels, localRanks } = plan;
  const { wideChannels, narrowStepBytes, lineSteps, llStepBytes, ll128StepBytes } = gpuBuffers;
  const peers = localRanks - 1;
  const rings = hasRingsApart(plan) ? channels * ringBuffer.steps * ringBuffer.stepBytes : 0;
  const ll = peers * channels * lineSteps * llStepBytes;
  const ll128 = peers * channels * lineSteps * ll128StepBytes;
  const wide = wideChannels * pairBuffer.stepBytes;
  const narrow = (channels - wideChannels) * narrowStepBytes;
  const simple = peers * pairBuffer.steps * (wide + narrow);
  const regions = peers * pairBytes(plan) + ringBytes(plan);
  const counters = regions - rings - ll - ll128 - simple;
  const tables = tableBytes(plan);
  return { total: regions + tables, rings, ll, ll128, simple, counters, tables };
}

/** Of all channels of a pair, in one direction. */
export function pairBytes(plan: GpuPlan): number {
  const { pairBuffer, gpuBuffers, channels } = plan;
  const { wideChannels, narrowStepBytes, lineSteps, llStepBytes, ll128StepBytes } = gpuBuffers;
  const lines = REGION_HEADER_BYTES + lineSteps * (llStepBytes + ll128StepBytes);
  const payload = wideChannels * pairBuffer.stepBytes + (channels - wideChannels) * narrowStepBytes;
  const slots = payload + channels * slotHeaderBytes(plan);
  return inPages(channels * lines + pairBuffer.steps * slots);
}

/** Of the rings, at one rank. */
export function ringBytes(plan: GpuPlan): number {
  const { steps, stepBytes } = plan.ringBuffer;
  return hasRingsApart(plan)
    ? inPages(plan.channels * (REGION_HEADER_BYTES + steps * (slotHeaderBytes(plan) + stepBytes)))
    : 0;
}

function tableBytes(plan: GpuPlan): number {
  const { channels, ranks } = plan;
  const states = channels * ranks + (hasRingsApart(plan) ? channels : 0);
  const rings = channels * RING_POSITION_BYTES + (channels + 1) * ranks * RING_ENTRY_BYTES;
  return 2 * states * GPU_STATE_BYTES + rings + (LAUNCH_ITEMS + 2 * ranks) * RECORDED_COUNT_BYTES;
}

function inPages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
}
