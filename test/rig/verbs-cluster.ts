/**
 * A cluster whose hosts have RoCE cards of the stand-in (native/test/verbs): mlx5_0 at eth0 and, on h1 and h2, mlx5_1 at roce1, a cable of
 * their own. They reach each other by a directory that all hosts share.
 */
import { appendFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Cluster } from './cluster.ts';
import { buildNativeTests, nativeTests } from './native-tests.ts';

/** On each host, where it has the library; the environment of its agents and ranks names it. */
const LIBRARY = '/run/libibverbs.so.1';

export class VerbsCluster implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #directory: string;

  private constructor(cluster: Cluster, directory: string) {
    this.cluster = cluster;
    this.#directory = directory;
  }

  /** Hosts from the third one on have no library. */
  static async start(count: number): Promise<VerbsCluster> {
    buildNativeTests('stand_in_verbs');
    const directory = await mkdtemp('/var/tmp/ncclrun-verbs-');
    const variables = {
      NCCL_IBVERBS_LIB: LIBRARY,
      STAND_IN_VERBS_DIR: directory,
      STAND_IN_VERBS: 'device=mlx5_0;gid=net:eth0;device=mlx5_1;gid=net:roce1',
    };
    const words = Object.entries(variables).map(([name, value]) => `"${name}=${value}"`);
    const cluster = await Cluster.start(count, { sshd: `SetEnv ${words.join(' ')}` });
    await cluster.inLogin('ip', 'link', 'add', 'rail-h1', 'type', 'veth', 'peer', 'name', 'rail-h2');
    for (const [index, host] of cluster.hosts.slice(0, 2).entries()) {
      await cluster.inLogin('ip', 'link', 'set', `rail-${host.name}`, 'netns', join(cluster.state, host.name, 'net'));
      await host.exec('ip', 'link', 'set', `rail-${host.name}`, 'name', 'roce1');
      await host.exec('ip', 'address', 'add', `10.80.0.${11 + index}/24`, 'dev', 'roce1');
      await host.exec('ip', 'link', 'set', 'roce1', 'up');
      await host.exec('ln', '-s', join(nativeTests, 'stand-in-verbs/libibverbs.so.1'), LIBRARY);
    }
    return new VerbsCluster(cluster, directory);
  }

  /** Faults, as native/test/verbs/stand_in_verbs.h describes them: of the processes on `host`, in this order. */
  plant(host: string, ...faults: readonly string[]): void {
    appendFileSync(join(this.#directory, 'control'), faults.map((fault) => `@${host} ${fault}\n`).join(''));
  }

  /** Processes that start from now on know of no fault. */
  async mend(): Promise<void> {
    await rm(this.#directory, { recursive: true });
    await mkdir(this.#directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true });
  }
}
