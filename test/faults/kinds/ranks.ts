/** Ranks that end, or leave something behind. */
import { killHard, rankOn } from '../../rig/faults.ts';
import { type Kind, fine } from '../kind.ts';

const exited = { status: 7, reason: 'rank-exit', names: 'rank' } as const;
const missing = { status: 125, reason: 'rank-missing', names: 'rank' } as const;
const crashed = { status: 139, reason: 'rank-signal', names: 'rank' } as const;
const killed = { status: 137, reason: 'rank-signal', names: 'rank' } as const;

export const rankKinds: readonly Kind[] = [
  {
    name: 'rank-exits',
    class: 'ends',
    verdicts: { started: [exited], streaming: [exited], teardown: [exited] },
    deed: { ranks: 'victim', what: 'exit', number: 7 },
  },
  {
    name: 'rank-exits-with-0',
    class: 'ends',
    verdicts: { started: [missing], streaming: [missing], teardown: [fine] },
    deed: { ranks: 'victim', what: 'exit', number: 0 },
  },
  {
    name: 'rank-crashes',
    class: 'ends',
    verdicts: { started: [crashed], streaming: [crashed], teardown: [crashed] },
    deed: { ranks: 'victim', what: 'signal', number: 11 },
  },
  {
    name: 'rank-hides-children',
    class: 'ends',
    verdicts: { started: [fine], streaming: [fine], teardown: [fine] },
    deed: { ranks: 'all', what: 'hide' },
  },
  {
    name: 'rank-killed-with-hidden-children',
    class: 'ends',
    verdicts: { streaming: [killed] },
    deed: { ranks: 'all', what: 'hide' },
    inject({ host, rank }) {
      const pid = rankOn(host, rank);
      if (pid !== null) killHard(pid);
      return Promise.resolve(pid !== null);
    },
  },
];
