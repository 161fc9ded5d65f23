/** What keeps an agent from coming up, on its host and on ours, and what cuts a copy of ncclrun short. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { repository } from '../../rig/cluster.ts';
import { killHard } from '../../rig/faults.ts';
import { limitProcesses, processLimitUnavailable } from '../../rig/process-limit.ts';
import { descendants, type ProcessEntry } from '../../rig/processes.ts';
import { type FaultClass, hostLost, notJoined, type JobSetup, type Kind, type Scene } from '../kind.ts';

const bundle = join(repository, 'dist/bundle/agent.cjs');
const cache = join(userInfo().homedir, '.cache');
const killed = { status: 137, reason: null, names: 'nobody' } as const;

/** The host's Node runs a program of ours in the place of its agent. */
function insteadOfAgent(name: string, program: string, faultClass: FaultClass = 'ends'): Kind {
  return {
    name,
    class: faultClass,
    verdicts: { connecting: notJoined },
    async prepare({ host, directory }) {
      const file = join(directory, 'agent.cjs');
      writeFileSync(file, program);
      await host.exec('mount', '--bind', file, bundle);
    },
    inject: () => Promise.resolve(true),
    lift: ({ host }) => host.exec('umount', bundle),
  };
}

/** The first that is there; false: the job ended without it. */
async function find({ command }: Scene, look: () => ProcessEntry | undefined): Promise<ProcessEntry | null> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (command.process.exitCode !== null) return null;
    await delay(2);
  }
}

/** A host that gets a copy, slowly, into an empty cache directory. */
async function prepareCopy({ host, directory }: JobSetup): Promise<void> {
  const own = join(directory, 'cache');
  mkdirSync(own);
  await host.hideInstallation();
  await host.useCache(own);
  await host.rate('30mbit');
}

/** Whatever has begun: `inject` comes once the host unpacks. */
function whileStaging(
  kind: Pick<Kind, 'name' | 'verdicts' | 'silences'> & { strike(scene: Scene, unpacker: number): Promise<unknown> },
): Kind {
  return {
    ...kind,
    class: 'ends',
    prepare: prepareCopy,
    // Packing what is copied comes before, and takes seconds where nothing was ever copied.
    meets: (scene) => find(scene, () => unpackerOn(scene)),
    async inject(scene) {
      const found = unpackerOn(scene);
      if (found !== undefined) await kind.strike(scene, found.pid);
      return found !== undefined;
    },
    async repair({ host }) {
      await host.exec('sh', '-ec', `test -z "$(find ${cache} -type f)"`);
      await host.uncut();
      await host.unrate();
      await host.exec('umount', cache, repository);
    },
  };
}

function unpackerOn({ host }: Scene): ProcessEntry | undefined {
  return host.guests().find(({ argv: [name = ''] }) => name.endsWith('/unpack'));
}

const limits = new Map<string, () => Promise<void>>();

const noProcesses: Kind = {
  name: 'no-processes-left',
  class: 'ends',
  verdicts: { connecting: notJoined },
  async prepare({ cluster, host, random }) {
    limits.set(
      host.address,
      await limitProcesses(`${basename(cluster.state)}-${host.name}-pids`, host.init, random(10)),
    );
  },
  inject: () => Promise.resolve(true),
  async repair({ host }) {
    await limits.get(host.address)?.();
    limits.delete(host.address);
  },
};

export const startKinds: readonly Kind[] = [
  insteadOfAgent('agent-stopped-at-start', 'process.kill(process.pid, "SIGSTOP")'),
  insteadOfAgent('agent-waits-at-start', 'setTimeout(() => {}, 1e6)'),
  // The watchdog gives it seconds of processor time, which the hosts of this machine share.
  insteadOfAgent('agent-loops-at-start', 'for (;;);', 'is reported'),
  ...(processLimitUnavailable() === null ? [noProcesses] : []),
  {
    name: 'local-ssh-stopped',
    class: 'ends',
    verdicts: { connecting: [...notJoined, hostLost], streaming: [hostLost] },
    options: () => ['--rsh', 'openssh'],
    async inject(scene) {
      const { command, host } = scene;
      const ssh = await find(scene, () =>
        descendants(command.pid).find(({ argv }) => basename(argv[0] ?? '') === 'ssh' && argv.includes(host.name)),
      );
      if (ssh !== null) process.kill(ssh.pid, 'SIGSTOP');
      return ssh !== null;
    },
  },
  whileStaging({
    name: 'cut-while-staging',
    verdicts: { connecting: notJoined },
    silences: true,
    strike: ({ host }) => host.cut(),
  }),
  whileStaging({
    name: 'cut-and-launcher-killed-while-staging',
    verdicts: { connecting: [killed] },
    silences: true,
    async strike({ host, command }) {
      await host.cut();
      killHard(command.pid);
    },
  }),
  whileStaging({
    name: 'unpacker-killed-while-staging',
    verdicts: { connecting: notJoined },
    strike: (_, unpacker) => Promise.resolve(killHard(unpacker)),
  }),
  whileStaging({
    name: 'unpacker-stopped-while-staging',
    verdicts: { connecting: notJoined },
    strike: (_, unpacker) => Promise.resolve(process.kill(unpacker, 'SIGSTOP')),
  }),
];
