/** One machine that the user has named twice: two agents run there, and their ranks share its memory and GPUs. */
import type { LocalRanks } from '../../control/messages/link.ts';
import { foldNames } from '../text/fold-names.ts';

interface NamedHost {
  readonly name: string;
  readonly hello: { readonly bootId: string } | null;
  readonly slots: { readonly simulated?: true };
}

/** Hosts of one machine each, where there are several of it. */
function shared<Named extends NamedHost>(hosts: readonly Named[]): (readonly Named[])[] {
  const real = hosts.filter(({ hello, slots }) => hello !== null && slots.simulated !== true);
  const groups = Map.groupBy(real, ({ hello }) => hello?.bootId);
  return [...groups.values()].filter((group) => group.length > 1);
}

/** A sentence for each such machine. */
export function sharedMachineTexts(hosts: readonly NamedHost[]): string[] {
  return shared(hosts).map((group) => {
    const names = foldNames(group.map(({ name }) => name));
    const what = `${names.join(' and ')} are one machine`;
    return `${what}: its ranks are numbered together (LOCAL_RANK), but exchange data as if on ${group.length} hosts; name it once`;
  });
}

/** For each host whose machine has others: how many ranks of the machine precede its own, and how many there are. `ranksOf`: by index of `hosts`. */
export function localRanksOf(hosts: readonly NamedHost[], ranksOf: (index: number) => number): (LocalRanks | null)[] {
  const result = hosts.map((): LocalRanks | null => null);
  for (const group of shared(hosts)) {
    const indexes = group.map((host) => hosts.indexOf(host));
    const all = indexes.reduce((sum, index) => sum + ranksOf(index), 0);
    let before = 0;
    for (const index of indexes) {
      result[index] = { before, all };
      before += ranksOf(index);
    }
  }
  return result;
}
