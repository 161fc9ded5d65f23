/** The stand-in for libibverbs (native/test/verbs/stand_in_verbs.h): RDMA devices that are memory of this machine's processes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildNativeTests, nativeTests } from './native-tests.ts';

export const standInVerbs = join(nativeTests, 'stand-in-verbs/libibverbs.so.1');

/** Builds it, and a program beside it. */
export function buildStandInVerbs(program: 'verbs_probe' | 'raw_verbs'): string {
  buildNativeTests('stand_in_verbs');
  buildNativeTests(program);
  return join(nativeTests, program);
}

/** An environment in which this machine has InfiniBand or RoCE ports. */
export class StandInVerbs implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'ncclrun-verbs-'));

  constructor() {
    buildNativeTests('stand_in_verbs');
  }

  /** `devices`: as native/test/verbs/stand_in_verbs.h describes them; without them there are sia and sib. */
  environment(devices?: string): NodeJS.ProcessEnv {
    return {
      NCCL_IBVERBS_LIB: standInVerbs,
      STAND_IN_VERBS_DIR: this.#directory,
      ...(devices === undefined ? {} : { STAND_IN_VERBS: devices }),
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
