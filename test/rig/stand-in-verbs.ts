/** The stand-in for libibverbs: an environment in which this machine has InfiniBand or RoCE ports. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildNativeTests, nativeTests } from './native-tests.ts';

export class StandInVerbs implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'ncclrun-verbs-'));

  constructor() {
    buildNativeTests('stand_in_verbs');
  }

  /** `devices`: as native/test/verbs/stand_in_verbs.h describes them; without them there are sia and sib. */
  environment(devices?: string): NodeJS.ProcessEnv {
    return {
      NCCL_IBVERBS_LIB: join(nativeTests, 'stand-in-verbs/libibverbs.so.1'),
      STAND_IN_VERBS_DIR: this.#directory,
      ...(devices === undefined ? {} : { STAND_IN_VERBS: devices }),
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
