/** What failed on the way: the words of a jump host's failure for whoever wanted the host behind it. */
import { ConnectionError } from '../shell/connection-error.ts';

const onTheWay = ', on the way there';

/** `jump`: the jump host's name. A failure that names the way already is left as it is. */
export function asJumpProblem(error: unknown, jump: string): unknown {
  if (!(error instanceof ConnectionError) || error.problem.detail.includes(onTheWay)) return error;
  const { problem } = error;
  const remedies: Partial<Record<typeof problem.cause, string>> = {
    'unknown-host': `check ProxyJump, and the HostName of ${jump}, in ~/.ssh/config`,
    refused: `no sshd listens there: start it, or correct ProxyJump, or the port of ${jump}, in ~/.ssh/config`,
  };
  const remedy = remedies[problem.cause] ?? problem.remedy;
  return new ConnectionError({ ...problem, detail: `${jump}${onTheWay}: ${problem.detail}`, remedy });
}
