import { Communicator } from './communicator.ts';
import { loadNative } from './engine/load.ts';
import type { Job, Native } from './engine/native.ts';
import { UsageError, translateError, translated } from './errors.ts';

/** Names a communicator of your own among some ranks of the job; without it, `init` makes the one of all ranks. */
export interface Membership {
  /** 128 bytes from `uniqueId()`. */
  readonly uniqueId: Uint8Array;
  readonly size: number;
  /** Ours among them. */
  readonly rank: number;
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
export async function init(membership?: Membership): Promise<Communicator> {
  const native = loadNative();
  if (membership === undefined && joinedJob) {
    throw new UsageError('init: this process has joined the communicator of the job before; pass that one around');
  }
  const { uniqueId, size, rank } = membership ?? jobOf(native);
  joinedJob ||= membership === undefined;
  const handle = await translated(() => native.commInit(uniqueId, size, rank));
  try {
    return new Communicator(native, handle);
  } catch (error) {
    await native.commClose(handle); // it broke in this moment
    throw translateError(error);
  }
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
