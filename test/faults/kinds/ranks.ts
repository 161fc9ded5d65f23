/** Ranks that end, or leave something behind. */
import { killHard, rankOn } from '../../rig/faults.ts';
import { fine, type Kind } from '../kind.ts';

const exited = { status: 7, reason: 'rank-exit', names: 'rank' } as const;
const missing = { status: 125, reason: 'rank-missing', names: 'rank' } as const;
const crashed = { status: 139, reason: 'rank-signal', names: 'rank' } as const;
const killed = { status: 137, reason: 'rank-signal', names: 'rank' } as const;

export const rankKinds: readonly Kind[] = [
  {
    name: 'rank-exits',
    class: 'ends',
    verdicts: { started: [exited], streaming: [exited], teardown: [exited] },
    action: { ranks: 'victim', what: 'exit', number: 7 },
  },
  {
    name: 'rank-exits-with-0',
    class: 'ends',
    verdicts: { started: [missing], streaming: [missing], teardown: [fine] },
    action: { ranks: 'victim', what: 'exit', number: 0 },
  },
  {
    name: 'rank-crashes',
    class: 'ends',
    verdicts: { started: [crashed], streaming: [crashed], teardown: [crashed] },
    action: { ranks: 'victim', what: 'signal', number: 11 },
  },
  {
    name: 'rank-hides-children',
    class: 'ends',
    verdicts: { started: [fine], streaming: [fine], teardown: [fine] },
    action: { ranks: 'all', what: 'hide' },
  },
  {
    name: 'rank-killed-with-hidden-children',
    class: 'ends',
    verdicts: { streaming: [killed] },
    action: { ranks: 'all', what: 'hide' },
    inject({ host, rank }) {
      const pid = rankOn(host, rank);
      if (pid !== null) killHard(pid);
      return Promise.resolve(pid !== null);
    },
  },
];
