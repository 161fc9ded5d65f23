/** Files that are no hostfiles, and are given as one by mistake. */
import { FailureError } from '../../model/failure-error.ts';

interface OtherFile {
  /** Found in a line: the first with content, unless `anywhere`. */
  readonly pattern: RegExp;
  readonly anywhere?: true;
  /** What it is, and what to write. */
  readonly advice: string;
}

const lineEach = 'a hostfile has a line for each host: node1 slots=8';

const kinds: readonly OtherFile[] = [
  {
    pattern: /^rank\s+[0-9]+\s*=/u,
    anywhere: true,
    advice: 'a rankfile of Open MPI: write a hostfile with a line for each rank, and --map-by seq',
  },
  { pattern: /^(cpu_index_using|overlapping_rs|app [0-9]|rank):/u, advice: `a resource file of jsrun; ${lineEach}` },
  { pattern: /^#!/u, advice: `a script; ${lineEach}` },
  {
    pattern: /^[0-9]{1,3}(\.[0-9]{1,3}){3}\s+(?!slots|max|port|user|cpu|count)[A-Za-z][A-Za-z0-9_.-]*(?!\s*=)(\s|$)/u,
    advice: 'lines as in /etc/hosts; write one name or address on each line',
  },
  {
    pattern: /^\[[A-Za-z][A-Za-z0-9_-]*(:(children|vars))?\]\s*$|\sansible_[a-z_]+\s*=/u,
    anywhere: true,
    advice: `an inventory of Ansible; ${lineEach} (ansible GROUP --list-hosts prints names)`,
  },
  { pattern: /^(-\s+\S|---\s*$)/u, advice: `YAML; ${lineEach}` },
  { pattern: /^(\{|\[\s*["{])/u, advice: `JSON; ${lineEach}` },
  {
    pattern: /^(host|match|include)\s+\S+\s*$/iu,
    advice: `a configuration of ssh; ncclrun reads ~/.ssh/config anyway; ${lineEach}`,
  },
  {
    pattern: /^\|1\||\s(ssh-(rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+)\s+AAAA/u,
    advice: `a known_hosts file of ssh; ${lineEach}`,
  },
  { pattern: /^NodeName=/iu, advice: 'a slurm.conf; scontrol show hostnames LIST prints hosts' },
  { pattern: /^[A-Z]+(\s+[A-Z():%]+)+\s*$/u, advice: `a table that a command printed; keep its first column alone` },
  {
    pattern: /^[A-Za-z0-9_-]+:\s+[^\s0-9]/u,
    advice: `groups of hosts, as ClusterShell has them; write the hosts of one group: ${lineEach}`,
  },
];

/** The same failure, which says what the file looks like where that is known. */
export function explainedByKind(error: unknown, lines: readonly string[]): unknown {
  if (!(error instanceof FailureError) || error.failure.type !== 'hostfile') return error;
  const advice = adviceOn(lines);
  if (advice === null) return error;
  return new FailureError({ ...error.failure, remedy: `the file looks like ${advice}` });
}

function adviceOn(lines: readonly string[]): string | null {
  const [shebang = ''] = lines;
  const content = lines.filter((line) => /^\s*[^\s#]/u.test(line)).map((line) => line.trimStart());
  const [first = '', second = ''] = shebang.startsWith('#!') ? lines : content;
  const found = kinds.find(({ pattern, anywhere }) => {
    return anywhere === true ? content.some((line) => pattern.test(line)) : pattern.test(first);
  });
  if (found !== undefined) return found.advice;
  const isMapping = /^[^\s:]+:\s*$/u.test(first) && second !== '';
  return isMapping ? `YAML; ${lineEach}` : null;
}
