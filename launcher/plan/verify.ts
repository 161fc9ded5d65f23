/** What a plan puts on the links of each kind of host, as text. */
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import { isOverloaded, linkLoads, shareOf } from '../../control/planner/verify/link-loads.ts';
import { columns } from '../text/columns.ts';

interface Verified {
  readonly text: string;
  readonly ok: boolean;
}

const SHOWN = 3;

export function verify({ shapes }: Cluster): Verified {
  const rows: string[][] = [['host', 'graph', 'link', 'load GB/s', 'of GB/s', '']];
  let ok = true;
  shapes.forEach(({ routes, ring, tree, collnetChain, collnetDirect }, index) => {
    for (const [name, graph] of Object.entries({
      ring,
      tree,
      collnet: collnetChain,
      'collnet direct': collnetDirect,
    })) {
      if (graph === null) continue;
      const loads = linkLoads(routes, graph);
      const overloaded = loads.filter(isOverloaded);
      ok &&= overloaded.length === 0;
      for (const load of loads.slice(0, Math.max(SHOWN, overloaded.length))) {
        const { from, to, bandwidth } = load.link;
        const share = `${(shareOf(load) * 100).toFixed(1)} %${isOverloaded(load) ? ' TOO MUCH' : ''}`;
        rows.push([
          `kind ${index}`,
          name,
          `${from.name} → ${to.name}`,
          gigabytes(load.load),
          gigabytes(bandwidth),
          share,
        ]);
      }
    }
  });
  const verdict = ok ? 'No link has more than it carries.' : 'Links have more than they carry.';
  return { text: `${columns(rows)}\n${verdict}\n`, ok };
}

function gigabytes(megabytes: number): string {
  return String(Number((megabytes / 1000).toPrecision(4)));
}
