/** Hosts that go away. */
import { type Kind, fine, hostLost, notJoined } from '../kind.ts';

const verdicts: Kind['verdicts'] = {
  connecting: [...notJoined, hostLost],
  spawning: [hostLost],
  started: [hostLost],
  streaming: [hostLost],
  teardown: [hostLost, fine],
};

export const hostKinds: readonly Kind[] = [
  {
    name: 'cut',
    class: 'ends',
    verdicts,
    silences: true,
    inject: ({ host }) => host.cut().then(() => true),
    repair: ({ host }) => host.uncut(),
  },
  {
    name: 'firewall-drops',
    class: 'ends',
    verdicts,
    silences: true,
    inject: ({ host }) => host.drop().then(() => true),
    repair: ({ host }) => host.accept(),
  },
  {
    name: 'firewall-resets',
    class: 'ends',
    verdicts,
    silences: true,
    inject: ({ host }) => host.reset().then(() => true),
    repair: ({ host }) => host.accept(),
  },
  {
    name: 'power-lost',
    class: 'ends',
    verdicts,
    silences: true,
    inject: ({ host }) => host.powerloss().then(() => true),
    repair: ({ host }) => host.boot(),
  },
  {
    name: 'host-dies',
    class: 'ends',
    verdicts,
    inject: ({ host }) => host.kill().then(() => true),
    repair: ({ host }) => host.boot(),
  },
  {
    name: 'freeze',
    class: 'ends',
    verdicts,
    silences: true,
    inject: ({ host }) => host.freeze().then(() => true),
    lift: ({ host }) => host.thaw(),
  },
];
