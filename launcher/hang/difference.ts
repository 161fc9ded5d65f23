/** The finding where ranks of a communicator have called different collectives: the fewer are to blame. */
import type { Evidence, VerdictOperation } from '../model/hang.ts';
import { describeCall } from '../../control/describe-call.ts';
import { namesOf } from './culprit.ts';
import type { Culprit } from './culprit.ts';
import type { Finding } from './finding.ts';
import type { WaitGraph } from './graph.ts';
import { callDifference } from './mismatch.ts';
import type { CallDifference } from './mismatch.ts';
import type { CommTable, Place } from './table.ts';

/** Calls that one sentence shows. */
const MAX_SHOWN = 4;

export function differenceFinding(comm: CommTable, place: Place, { nodeOf }: WaitGraph): Finding | null {
  const difference = callDifference(comm);
  if (difference === null) return null;
  const { kind, at, groups, exact, hasMinority } = difference;
  const blamed = (hasMinority ? groups.slice(0, 1) : groups).flatMap(({ places }) => places);
  const culprits = blamed.map((one): Culprit => {
    const where = one.inside ? 'inside' : 'outside';
    return { member: one.member, place: one, kind, where, one: '', many: '' };
  });
  const sentences = groups.slice(0, MAX_SHOWN).map((group) => callText(difference, group));
  const number = `${exact ? 'from' : 'at or before'} the communicator’s collective number ${at}`;
  const evidence = groups.slice(0, MAX_SHOWN).map(
    ({ places, calls, call }): Evidence => ({
      kind: 'call',
      host: null,
      subject: namesOf(places.map(({ member }) => member)),
      value: call === null ? calls.last : describeCall(call),
      unit: null,
    }),
  );
  return {
    kind,
    confidence: hasMinority ? (exact ? 'certain' : 'likely') : 'suspected',
    place,
    operation: operationOf(difference),
    culprits,
    late: [`the ranks’ calls differ ${number}: ${sentences.join('; ')}`],
    waits: [],
    evidence,
    ends: blamed.flatMap(({ jobRank }) => nodeOf.get(jobRank) ?? []),
  };
}

/** As most ranks have called it, or, where nobody remembers that, as others have. */
function operationOf({ at, groups }: CallDifference): VerdictOperation {
  const call = groups.findLast((group) => group.call !== null)?.call ?? null;
  const { collective = 'an operation', count = null, type = null, operator = null, root = null } = call ?? {};
  return { number: at, collective, bytes: 0, count, type, operator, root };
}

function callText({ exact }: CallDifference, { places, calls, call }: CallDifference['groups'][number]): string {
  const who = namesOf(places.map(({ member }) => member));
  if (exact && call !== null) return `${who} called ${describeCall(call)}`;
  return `${who} ${places.length === 1 ? 'is' : 'are'} at number ${calls.count}, ${calls.last}`;
}
