/** Ranks that leave what is hard to end or to remove. */
import { killHard, partsOn, rankOn, type Part } from '../../rig/faults.ts';
import { freezeProcess } from '../../rig/freezer.ts';
import { alive, environmentOf, type ProcessEntry } from '../../rig/processes.ts';
import { fine, hostLost, type Kind, type Scene } from '../kind.ts';

const LEVELS = 500;

/** What ranks of a host have hidden: children of the guardian, as the ranks are, which come before them. */
function hiddenOn({ host }: Scene): ProcessEntry[] {
  const ranks = partsOn(host, 'rank');
  return ranks.filter(({ pid }) => rankOn(host, Number(environmentOf(pid, 'RANK'))) !== pid);
}

function killAll({ host }: Scene, parts: readonly Part[]): Promise<boolean> {
  const found = parts.flatMap((part) => partsOn(host, part));
  for (const { pid } of found) killHard(pid);
  return Promise.resolve(found.length === parts.length);
}

const thaws = new WeakMap<Scene, () => Promise<void>>();

export const survivorKinds: readonly Kind[] = [
  {
    name: 'rank-hides-threads',
    class: 'ends',
    verdicts: { started: [fine], streaming: [fine], teardown: [fine] },
    action: { ranks: 'all', what: 'thread' },
  },
  {
    name: 'kill-guardian-with-hidden-threads',
    class: 'ends',
    verdicts: { streaming: [hostLost] },
    action: { ranks: 'all', what: 'thread' },
    inject: (scene) => killAll(scene, ['guardian']),
  },
  {
    name: 'kill-warden-and-guardian-with-hidden-threads',
    class: 'ends',
    verdicts: { streaming: [hostLost] },
    action: { ranks: 'all', what: 'thread' },
    inject: (scene) => killAll(scene, ['warden', 'guardian']),
  },
  {
    name: 'kill-guardian-and-agent-with-hidden-children',
    class: 'ends',
    verdicts: { streaming: [hostLost] },
    action: { ranks: 'all', what: 'hide' },
    inject: (scene) => killAll(scene, ['guardian', 'agent']),
  },
  {
    name: 'rank-digs-deep',
    class: 'ends',
    verdicts: { started: [fine], streaming: [fine], teardown: [fine] },
    action: { ranks: 'victim', what: 'dig', number: LEVELS },
  },
  {
    name: 'rank-digs-deep-kill-guardian-and-agent',
    class: 'ends',
    verdicts: { streaming: [hostLost] },
    action: { ranks: 'victim', what: 'dig', number: LEVELS },
    inject: (scene) => killAll(scene, ['guardian', 'agent']),
  },
  {
    name: 'rank-leaves-frozen-process',
    class: 'is reported',
    verdicts: { streaming: [fine] },
    action: { ranks: 'victim', what: 'hide' },
    inject(scene) {
      const [hidden] = hiddenOn(scene);
      if (hidden === undefined) return Promise.resolve(false);
      const thaw = freezeProcess(hidden.pid, `ncclrun-faults-${hidden.pid}`);
      if (thaw !== null) thaws.set(scene, thaw);
      return Promise.resolve(true);
    },
    check({ stderr }, _result, { host }) {
      const left = partsOn(host, 'rank').filter(({ pid }) => alive(pid)); // version 2 of the freezer lets it die
      if (left.length === 0 || /could not end process \d+ \(\S+, \S+, state \S\)/.test(stderr)) return null;
      return 'the frozen process is not named';
    },
    lift: (scene) => thaws.get(scene)?.() ?? Promise.resolve(),
  },
];
