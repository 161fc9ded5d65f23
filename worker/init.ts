import type { Signal } from './calls.ts';
import { Communicator } from './communicator.ts';
import { loadNative } from './engine/load.ts';
import type { CommHandle, Job, Native } from './engine/native.ts';
import { UsageError, translateError, translated } from './errors.ts';

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
}

/** The unique id of the job's communicator can be used once per process. */
let joinedJob = false;

/**
 * Joins the communicator of all ranks of the job; resolves when every rank has. Or, with a membership, a communicator of `size` ranks that
 * all pass the same unique id (128 bytes, from `uniqueId()` at one of them) and each its own rank in it.
 *
 * @throws NcclError `invalidUsage` outside a job (start the program with `ncclrun -n 4 program.ts`), `remoteError` if a rank ended
 * before it joined
 * @throws UsageError if the job's communicator was joined before by this process
 */
export async function init(options: InitOptions | (Membership & InitOptions) = {}): Promise<Communicator> {
  options.signal?.throwIfAborted();
  const native = loadNative();
  const membership = 'uniqueId' in options ? options : null;
  if (membership === null && joinedJob) {
    throw new UsageError('init: this process has joined the communicator of the job before; pass that one around');
  }
  const { uniqueId, size, rank } = membership ?? jobOf(native);
  joinedJob ||= membership === null;
  const handle = await translated(() => join(native, { uniqueId, size, rank }, options.signal));
  try {
    return new Communicator(native, handle);
  } catch (error) {
    await native.commClose(handle); // it broke in this moment
    throw translateError(error);
  }
}

async function join(native: Native, { uniqueId, size, rank }: Membership, signal?: Signal): Promise<CommHandle> {
  const handle = native.commInit(uniqueId, size, rank);
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
  return handle;
}

/** 128 bytes that name a communicator to be. Made by one rank, sent to the others, passed to `init` by all. */
export function uniqueId(): Uint8Array {
  try {
    return loadNative().getUniqueId();
  } catch (error) {
    throw translateError(error);
  }
}

function jobOf(native: Native): Job {
  try {
    return native.getJob();
  } catch (error) {
    throw translateError(error);
  }
}
