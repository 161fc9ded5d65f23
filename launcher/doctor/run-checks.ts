/** Checks over the hosts that were reached. */
import { foldNames } from '../text/fold-names.ts';
import type { Check, Finding, ReadHost } from './finding.ts';

const MAX_NAMES = 4;

/** A finding for each complaint, and one `ok` for each check and host without any. */
export function runChecks(checks: readonly Check[], hosts: readonly ReadHost[]): Finding[] {
  return checks.flatMap((check) => [...byHost(check, hosts), ...byComparison(check, hosts)]);
}

function byHost({ id, ofHost }: Check, hosts: readonly ReadHost[]): Finding[] {
  if (ofHost === undefined) return [];
  return hosts.flatMap(({ name, readings }) => {
    const complaints = ofHost(readings, hosts);
    if (complaints === null) return [];
    if (complaints.length === 0) return [okOf(id, name)];
    return complaints.map(({ subject = '', ...rest }) => ({ check: id, host: name, subject, ...rest }));
  });
}

function okOf(check: string, host: string): Finding {
  return { check, answer: 'ok', host, subject: '', message: '', remedy: null };
}

/** Who differs from most others is named; of two equal halves nobody is, so one finding tells of both. */
function byComparison({ id, alike }: Check, hosts: readonly ReadHost[]): Finding[] {
  if (alike === undefined || hosts.length < 2) return [];
  const groups = new Map<string, string[]>();
  for (const { name, readings } of hosts) {
    const value = alike.value(readings);
    if (value !== null) groups.set(value, [...(groups.get(value) ?? []), name]);
  }
  const sorted = [...groups].toSorted(([, one], [, other]) => other.length - one.length);
  const [most, second] = sorted;
  if (most === undefined) return [];
  const common = { check: id, subject: '', answer: alike.answer, remedy: alike.remedy };
  if (second !== undefined && second[1].length === most[1].length) {
    const all = sorted.map(([value, names]) => `${namesText(names)}: ${value}`).join('; ');
    return [{ ...common, host: null, message: `hosts differ in ${alike.what}: ${all}` }];
  }
  const [usual, many] = most;
  const others = sorted
    .slice(1)
    .flatMap(([value, names]) =>
      names.map((host) => ({ ...common, host, message: `${alike.what} ${value}; ${namesText(many)}: ${usual}` })),
    );
  return [...many.map((host) => okOf(id, host)), ...others];
}

function namesText(names: readonly string[]): string {
  const folded = foldNames(names);
  return folded.length > MAX_NAMES ? `${names.length} others` : folded.join(', ');
}
