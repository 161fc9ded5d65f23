import type { Signal } from './calls.ts';
import { Communicator } from './communicator.ts';
import { Device } from './device/device.ts';
import { loadNative } from './engine/load.ts';
import type { CommHandle, Native } from './engine/native.ts';
import { UsageError, translateError, translated } from './engine/errors.ts';

/** Names a communicator of your own among some ranks of the job; without it, `init` makes the one of all ranks. */
export interface Membership {
  /** 128 bytes from `uniqueId()`. */
  readonly uniqueId: Uint8Array;
  readonly size: number;
  /** Ours among them. */
  readonly rank: number;
}

export interface InitOptions {
  /**
   * When it is aborted before every rank has joined, `init` rejects with its reason, and so it does at the ranks that have joined or will
   * (NcclError `remoteError`).
   */
  readonly signal?: Signal;
  /** Where the communicator's buffers lie: in ordinary memory ('host', the default; typed arrays serve too), or on GPUs. All ranks say the same. */
  readonly device?: 'cuda' | 'host';
  /** With `device: 'cuda'`: CUDA's number of the GPU. Default: our number among the ranks of this host (NCCLRUN_LOCAL_RANK). */
  readonly gpu?: number;
}

/** The unique id of the job's communicator can be used once per process. */
let joinedJob = false;

/**
 * Joins the communicator of all ranks of the job; resolves when every rank has. Or, with a membership, a communicator of `size` ranks that
 * all pass the same unique id (128 bytes, from `uniqueId()` at one of them) and each its own rank in it.
 *
 * @throws NcclError `invalidUsage` outside a job (start the program with `ncclrun -n 4 program.ts`), `remoteError` if a rank ended
 * before it joined, `invalidUsage` or `unhandledCudaError` where there is no such GPU
 * @throws UsageError if the job's communicator was joined before by this process, or for a device that does not exist
 */
export async function init(options: InitOptions | (Membership & InitOptions) = {}): Promise<Communicator> {
  options.signal?.throwIfAborted();
  const native = loadNative();
  const membership = 'uniqueId' in options ? options : null;
  if (membership === null && joinedJob) {
    throw new UsageError('init: this process has joined the communicator of the job before; pass that one around');
  }
  const gpu = gpuOf(options);
  const { uniqueId, size, rank } = membership ?? begin(() => native.getJob());
  const handle = begin(() => native.commInit(uniqueId, size, rank, gpu));
  joinedJob ||= membership === null;
  await translated(() => ready(native, handle, options.signal));
  try {
    return new Communicator(native, handle, new Device(native, gpu));
  } catch (error) {
    await native.commClose(handle); // it broke in this moment
    throw translateError(error);
  }
}

function gpuOf({ device = 'host', gpu }: InitOptions): number | null {
  if (device !== 'cuda' && device !== 'host')
    throw new UsageError(`init: device '${String(device)}' is unknown; known are cuda and host`);
  if (device === 'host') {
    if (gpu !== undefined) throw new UsageError(`init: gpu ${gpu} is given, but not device: 'cuda'`);
    return null;
  }
  const number = gpu ?? gpuOfRank(Number(process.env['NCCLRUN_LOCAL_RANK'] ?? 0));
  if (!Number.isInteger(number) || number < 0 || number >= 2 ** 31)
    throw new UsageError(`init: gpu ${number} is no number of a GPU; it must be a whole number from 0`);
  return number;
}

/** Its own, or with NCCL_MULTI_RANK_GPU_ENABLE one that it shares where there are fewer. */
function gpuOfRank(localRank: number): number {
  return process.env['NCCL_MULTI_RANK_GPU_ENABLE'] === '1' ? localRank % Math.max(gpuCount(), 1) : localRank;
}

/** How many GPUs this process can use, with `device: 'cuda'`; 0 where there is no CUDA. */
export function gpuCount(): number {
  return begin(() => loadNative().gpuCount());
}

async function ready(native: Native, handle: CommHandle, signal?: Signal): Promise<void> {
  let left = false;
  const leave = () => {
    left = true;
    native.abort(handle, `the signal of init was aborted: ${String(signal?.reason)}`);
  };
  signal?.addEventListener('abort', leave);
  try {
    await native.commReady(handle);
    if (left) await native.commClose(handle); // in the moment in which it was ready
    signal?.throwIfAborted();
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

/** 128 bytes that name a communicator to be. Made by one rank, sent to the others, passed to `init` by all. */
export function uniqueId(): Uint8Array {
  return begin(() => loadNative().getUniqueId());
}

function begin<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translateError(error);
  }
}
