/** GPUs as NVML and CUDA know them; each of the two may be missing. */
import type { CudaGpu, Native, NvmlGpu } from '../engine/native.ts';
import type { GpuFacts } from './facts.ts';
import { sysfsAddress } from './walk.ts';

export interface Found<Facts> {
  readonly facts: readonly Facts[];
  /** What is missing, and why: sentences without their ends. */
  readonly notes: readonly string[];
}

export type GpuProbes = Pick<Native, 'cudaGpus'> & {
  nvmlGpus(): Awaited<ReturnType<Native['nvmlGpus']>> | ReturnType<Native['nvmlGpus']>;
};

/** Starts CUDA's driver, but makes no context. */
export async function gpuFacts(native: GpuProbes): Promise<Found<GpuFacts>> {
  const nvml = await native.nvmlGpus();
  if (typeof nvml !== 'string' && nvml.length === 0) return { facts: [], notes: ['no GPUs: NVML sees none'] };
  const cuda = native.cudaGpus();
  if (typeof nvml !== 'string') return fromNvml(nvml, cuda);
  if (typeof cuda === 'string') return { facts: [], notes: [`no GPUs: ${nvml}, and ${cuda}`] };
  return {
    facts: cuda.map(({ busId, computeCapability, gpuDirect }, index) => ({
      busId: sysfsAddress(busId),
      index,
      computeCapability,
      gpuDirect,
      links: [],
      c2c: null,
    })),
    notes: [`no NVLinks: ${nvml}; the GPUs are those that CUDA shows, in its order`],
  };
}

function fromNvml(nvml: readonly NvmlGpu[], cuda: readonly CudaGpu[] | string): Found<GpuFacts> {
  const direct = new Map(
    typeof cuda === 'string' ? [] : cuda.map((one) => [sysfsAddress(one.busId), one.gpuDirect] as const),
  );
  const facts = nvml.map((gpu) => {
    const busId = sysfsAddress(gpu.busId);
    const links = gpu.links.slice(0, linksOf(gpu.computeCapability));
    return { ...gpu, busId, links, gpuDirect: direct.get(busId) ?? false };
  });
  const unknown = facts.filter(({ busId }) => !direct.has(busId)).map(({ index }) => index);
  const why = typeof cuda === 'string' ? cuda : 'CUDA does not show them';
  return {
    facts: facts.toSorted((one, other) => one.index - other.index),
    notes: unknown.length === 0 ? [] : [`GPUDirect of GPUs ${unknown.join(', ')} is taken for missing: ${why}`],
  };
}

/** Links that a GPU of a generation has at most. */
function linksOf(computeCapability: number): number {
  if (computeCapability < 60) return 0;
  if (computeCapability < 70) return 4;
  if (computeCapability < 80) return 6;
  return computeCapability < 90 ? 12 : 18;
}
