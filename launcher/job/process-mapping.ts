/** PMI_process_mapping: which ranks share a host, as MPICH's libraries read it. */

/** Longest value of a key that a PMI server states. */
const MAX_LENGTH = 1024;

interface Block {
  readonly firstHost: number;
  hosts: number;
  readonly ranksOnEach: number;
}

/**
 * `(vector,(FIRST HOST,HOSTS,RANKS ON EACH),…)`, which repeats until all ranks have a host. Empty if it is too long, in which case the libraries
 * compare the names of their hosts. `rankHosts`: host index by rank.
 */
export function processMapping(rankHosts: readonly number[]): string {
  const blocks = blocksOf(rankHosts).map(
    ({ firstHost, hosts, ranksOnEach }) => `(${firstHost},${hosts},${ranksOnEach})`,
  );
  const period = blocks.findIndex(
    (_, index) => index > 0 && blocks.length % index === 0 && blocks.every((block, at) => block === blocks[at % index]),
  );
  const text = `(vector,${(period === -1 ? blocks : blocks.slice(0, period)).join(',')})`;
  return text.length > MAX_LENGTH ? '' : text;
}

/** Neighbouring hosts with equally many neighbouring ranks make one block. */
function blocksOf(rankHosts: readonly number[]): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < rankHosts.length; ) {
    const host = rankHosts[at] ?? 0;
    let end = at;
    while (rankHosts[end] === host) end += 1;
    const ranksOnEach = end - at;
    const last = blocks.at(-1);
    if (last?.ranksOnEach === ranksOnEach && last.firstHost + last.hosts === host) last.hosts += 1;
    else blocks.push({ firstHost: host, hosts: 1, ranksOnEach });
    at = end;
  }
  return blocks;
}
