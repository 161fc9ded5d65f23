import type { CallArguments } from './messages/hang.ts';

/** The words of describe in native/datapath/step_call.cc. */
export function describeCall({ collective, count, type, operator, root }: CallArguments): string {
  if (collective === 'barrier') return 'a barrier';
  const reduction = operator === null ? '' : ` with ${operator}`;
  return `${collective} of ${count} ${type ?? '?'}${reduction}${root === null ? '' : `, root ${root}`}`;
}
