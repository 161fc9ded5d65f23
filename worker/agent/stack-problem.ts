/** Sentences on why a process has no stacks. */
import { readFileSync } from 'node:fs';
import { type ReadStack, StackProblem } from '../../control/messages/stack.ts';

/** Of Yama, a security module of Linux; null: it is not there. */
function ptraceScope(): number | null {
  try {
    return Number(readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'latin1'));
  } catch {
    return null;
  }
}

/** Null for StackProblem.none. */
export function stackProblem({ problem, detail, pid }: Pick<ReadStack, 'problem' | 'detail' | 'pid'>): string | null {
  switch (problem) {
    case StackProblem.none:
      return null;
    case StackProblem.gone:
      return 'its process has ended';
    case StackProblem.notPermitted:
      return `the system does not let process ${pid} be traced${reasonOf(ptraceScope(), detail)}`;
    case StackProblem.traced:
      return `process ${pid} is traced by process ${detail}: detach that debugger`;
    case StackProblem.uninterruptible:
      return `process ${pid} is in uninterruptible sleep (state D), in which nothing can stop it`;
    case StackProblem.otherUser:
      return `process ${pid} belongs to another user (user id ${detail})`;
    case StackProblem.notStopped:
      return `process ${pid} did not stop in time: it is held up in the kernel, or its host is overloaded`;
    case StackProblem.notOurs:
      return `process ${pid} does not descend from the guardian of this host`;
    case StackProblem.late:
      return 'there was no time left for it: ask for fewer ranks with --rank';
    case StackProblem.failed:
      return 'the guardian could not read it';
    default:
      return problem satisfies never;
  }
}

export function reasonOf(scope: number | null, errno: number): string {
  if (scope === 3) return ': kernel.yama.ptrace_scope is 3, which forbids it to everybody until the next boot';
  if (scope === 2) return ': kernel.yama.ptrace_scope is 2, which allows it to root alone';
  return ` (errno ${errno}): it may have raised its privileges, or a container's rules (seccomp) forbid ptrace`;
}
