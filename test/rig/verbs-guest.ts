/** Jobs of two hosts, left and right, over real libibverbs and rdma_rxe in a guest: test/rig/soft-roce/hosts.sh has what their scripts call. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from './cluster.ts';
import { compileWithEngine } from './compile.ts';
import { buildNativeTests, nativeTests } from './native-tests.ts';
import { runInGuest } from './soft-roce/guest.ts';
import type { GuestResult } from './soft-roce/guest.ts';

export class VerbsGuest implements AsyncDisposable {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async make(): Promise<VerbsGuest> {
    buildNativeTests('net_verbs_test');
    const directory = await mkdtemp(join(repository, 'build/test-guest-'));
    await compileWithEngine('test/rig/programs/large-sums.c', directory);
    return new VerbsGuest(directory);
  }

  /** A script of bash in the repository, in which $sums is the program large-sums. */
  run(script: string, seconds: number): Promise<GuestResult> {
    const begin = [`cd ${repository}`, '. test/rig/soft-roce/hosts.sh', `sums=${join(this.#directory, 'large-sums')}`];
    return runInGuest([...begin, script].join('\n'), join(this.#directory, 'out'), seconds);
  }

  /** The conformance tests of networks whose titles contain one of these. */
  async conformance(
    titles: readonly string[],
    seconds: number,
    program = join(nativeTests, 'net_verbs_test'),
  ): Promise<GuestResult> {
    const ports = 'rxa,::ffff:10.8.0.1 rxb,::ffff:10.8.0.2';
    const runs = titles.map((title) => `NCCLRUN_TEST_VERBS='${ports}' ${program} '${title}' || exit 1`);
    return runInGuest(runs.join('\n'), join(this.#directory, 'out'), seconds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
