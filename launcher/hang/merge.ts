/** Joins findings with the same kind of cause in several communicators: a frozen host stops ranks of many, which is one verdict. */
import { complaints } from './culprit.ts';
import type { Finding } from './finding.ts';

const JOINED: ReadonlySet<string> = new Set(['late', 'stopped', 'stuck-outside', 'rank-dead', 'host-silent', 'left']);

export function mergeAlike(findings: readonly Finding[]): Finding[] {
  const joined = new Map<string, Finding>();
  const others: Finding[] = [];
  for (const finding of findings) {
    const known = joined.get(finding.kind);
    if (!JOINED.has(finding.kind)) others.push(finding);
    else joined.set(finding.kind, known === undefined ? finding : join(known, finding));
  }
  return [...joined.values(), ...others].toSorted((one, other) => other.place.waitedMs - one.place.waitedMs);
}

/** What has waited longer leads. */
function join(one: Finding, other: Finding): Finding {
  const [first, second] = one.place.waitedMs >= other.place.waitedMs ? [one, other] : [other, one];
  const known = new Set(first.culprits.map(({ member }) => member));
  const culprits = [...first.culprits, ...second.culprits.filter(({ member }) => !known.has(member))];
  const sentences = new Set([...complaints(culprits), ...first.late, ...second.late]);
  return {
    ...first,
    culprits,
    late: culprits.length > 0 ? complaints(culprits) : [...sentences],
    evidence: [...first.evidence, ...second.evidence],
    ends: [...first.ends, ...second.ends],
  };
}
