/** The finding where ranks wait for each other, with the cycle in words. */
import { MAX_NAMED, nameOf } from './culprit.ts';
import type { Culprit } from './culprit.ts';
import type { Finding } from './finding.ts';
import type { WaitGraph } from './graph.ts';
import type { Member, Place } from './table.ts';

interface Step {
  readonly place: Place;
  readonly next: Member;
}

/** `cycle`: nodes, each waiting for the next, and the last for the first. */
export function deadlockFinding(graph: WaitGraph, cycle: readonly number[]): Finding {
  const steps = stepsOf(graph, cycle);
  const [first] = steps;
  if (first === undefined) throw new Error('a cycle of waits without a rank');
  const shown = steps.slice(0, MAX_NAMED).map(({ place: { operation, collective, comm, member }, next }) => {
    const where = `operation ${operation} (${collective}) of communicator ${comm.id}`;
    return `${nameOf(member)} waits in ${where} for rank ${next.jobRank}`;
  });
  const more = steps.length > shown.length ? [`and ${steps.length - shown.length} more in the same way`] : [];
  const isCollective = steps.every(({ place }) => place.collective !== 'sendRecv');
  const culprits = steps.map(({ place }): Culprit => {
    return { member: place.member, place, kind: 'deadlock', where: 'inside', one: '', many: '' };
  });
  return {
    kind: 'deadlock',
    confidence: isCollective ? 'likely' : 'suspected',
    place: first.place,
    culprits,
    late: [`the ranks wait for each other: ${[...shown, ...more].join('; ')}`],
    waits: [],
    evidence: [],
    ends: cycle,
  };
}

/** The ranks of a way through the graph, each with the next; groups between them are left out. */
export function stepsOf({ nodes, edges }: WaitGraph, way: readonly number[], isCycle = true): Step[] {
  return way.flatMap((node, index) => {
    const here = nodes[node];
    const after = isCycle ? [...way.slice(index + 1), ...way.slice(0, index + 1)] : way.slice(index + 1);
    const next = after.map((one) => nodes[one]).find((one) => one?.kind === 'rank');
    const place = (edges[node] ?? []).find(({ to }) => to === after[0])?.place;
    if (here?.kind !== 'rank' || next?.kind !== 'rank' || place === undefined || place === null) return [];
    return [{ place, next: next.member }];
  });
}
