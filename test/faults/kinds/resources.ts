/** Disks that are full, and no descriptors left. */
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { repository } from '../../rig/cluster.ts';
import { exhaustDescriptors, partsOn, type Part } from '../../rig/faults.ts';
import { fine, hostLost, notJoined, type Kind, type Scene, type Verdict } from '../kind.ts';

const smallDisk = ['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs'] as const;
const cache = join(userInfo().homedir, '.cache');
const logs = '/mnt';
/** No room for another file, nor for another page. */
const fillTmp = [
  'set -- $(df --output=iused,used -k /tmp | tail -1)',
  'mount -o "remount,nr_inodes=$1,size=$(($2 + 4))k" /tmp',
].join('\n');

const rankFailed: Verdict = { status: 1, reason: 'rank-exit', names: 'rank' };
const rankWriteFailed: Verdict = { status: 3, reason: 'rank-exit', names: 'rank' };
const outputFailed: Verdict = { status: 125, reason: 'output', names: 'nobody' };
/** Something that the host needed could not be opened or started there, or a rank was told that it could not. */
const crippled: readonly Verdict[] = [
  ...notJoined,
  hostLost,
  { status: 125, reason: 'spawn', names: 'host' },
  { status: 1, reason: 'rank-exit', names: 'host' },
  { status: 1, reason: 'rank-missing', names: 'host' },
];
const unconnected: readonly Verdict[] = [
  { status: 125, reason: 'host-unreachable', names: 'anybody' },
  { status: 125, reason: 'agent', names: 'anybody' },
];

/** False: it is gone. */
function exhaust(pid: number): Promise<boolean> {
  return exhaustDescriptors(pid).then(
    () => true,
    () => false,
  );
}

/** One that is still to come is waited for. */
async function exhaustPart({ host, command }: Scene, part: Part): Promise<boolean> {
  for (;;) {
    const [found] = partsOn(host, part);
    // One that ended since is not the one that is still to come.
    if (found !== undefined && (await exhaust(found.pid))) return true;
    if (command.process.exitCode !== null) return false;
    await delay(2);
  }
}

export const resourceKinds: readonly Kind[] = [
  {
    name: 'disk-full-tmp',
    class: 'ends',
    // Nothing is written there once the agent has its directory.
    verdicts: {
      connecting: [...notJoined, fine],
      spawning: [fine],
      started: [fine],
      streaming: [fine],
      teardown: [fine],
    },
    async inject({ host }) {
      await host.exec('sh', '-ec', fillTmp);
      return true;
    },
    repair: ({ host }) => host.exec('mount', '-o', 'remount,size=50%,nr_inodes=0', '/tmp'),
  },
  {
    name: 'disk-full-rank',
    class: 'ends',
    verdicts: { started: [rankWriteFailed], streaming: [rankWriteFailed], teardown: [rankWriteFailed] },
    prepare: ({ host, directory }) => host.exec(...smallDisk, join(directory, 'work')),
    action: { ranks: 'victim', what: 'fill' },
    repair: ({ host, directory }) => host.exec('umount', join(directory, 'work')),
  },
  {
    name: 'disk-full-output',
    class: 'ends',
    verdicts: { started: [outputFailed], streaming: [outputFailed] },
    prepare: ({ cluster }) => cluster.inLogin(...smallDisk, logs),
    options: () => ['--output', `dir=${logs}`],
    action: { ranks: 'victim', what: 'flood', number: 5000 },
    repair: ({ cluster }) => cluster.inLogin('umount', logs),
  },
  {
    name: 'disk-full-staging',
    class: 'ends',
    verdicts: { connecting: notJoined },
    async prepare({ host }) {
      await host.hideInstallation();
      await host.exec('mkdir', '-p', cache);
      await host.exec(...smallDisk, cache);
    },
    // Packing what is copied comes before, and takes seconds where nothing was ever copied.
    meets: ({ command, host }) => command.line('stderr', new RegExp(`^ncclrun: ${host.name}: gets a copy`)),
    inject: () => Promise.resolve(true),
    lift: ({ host }) => host.exec('sh', '-ec', `test -z "$(find ${cache} -type f)"`), // of a copy that failed nothing stays
    repair: ({ host }) => host.exec('umount', cache, repository),
  },
  {
    name: 'descriptors-rank',
    class: 'ends',
    verdicts: { started: [rankFailed], streaming: [fine], teardown: [fine] },
    action: { ranks: 'victim', what: 'exhaust' },
  },
  {
    name: 'descriptors-agent',
    class: 'ends',
    verdicts: {
      connecting: [...crippled, fine],
      spawning: [...crippled, fine],
      started: [...crippled, fine],
      streaming: [fine],
      teardown: [fine],
    },
    inject: (scene) => exhaustPart(scene, 'agent'),
  },
  {
    name: 'descriptors-guardian',
    class: 'ends',
    verdicts: {
      connecting: [...crippled, fine],
      spawning: [...crippled, fine],
      started: [fine],
      streaming: [fine],
      teardown: [fine],
    },
    inject: (scene) => exhaustPart(scene, 'guardian'),
  },
  {
    name: 'descriptors-launcher',
    class: 'ends',
    verdicts: {
      connecting: [...unconnected, fine],
      spawning: [fine],
      started: [fine],
      streaming: [fine],
      teardown: [fine],
    },
    inject: ({ command }) => exhaust(command.pid),
  },
];
