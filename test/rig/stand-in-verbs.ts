/** The stand-in for libibverbs (native/test/verbs/stand_in_verbs.h): RDMA devices that are memory of this machine's processes. */
import { join } from 'node:path';
import { buildNativeTests, nativeTests } from './native-tests.ts';

export const standInVerbs = join(nativeTests, 'stand-in-verbs/libibverbs.so.1');

/** Builds it, and a program beside it. */
export function buildStandInVerbs(program: 'verbs_probe' | 'raw_verbs'): string {
  buildNativeTests('stand_in_verbs');
  buildNativeTests(program);
  return join(nativeTests, program);
}
