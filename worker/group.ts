/** Operations that begin together and make progress together, of one communicator or of several. */
import type { Native, Operation, StreamOperation } from './engine/native.ts';
import { translateError } from './engine/errors.ts';

/** Promises for operations that have begun: `number` is what native code calls one. null: it has ended. */
interface Ends<T> {
  of(number: number, operation: T): Promise<void> | null;
}

interface Queued {
  readonly native: Native;
  readonly operation: Operation | StreamOperation;
  readonly begun: (number: number) => Promise<void> | null;
  readonly ended: PromiseWithResolvers<void>;
}

let depth = 0;
let queued: Queued[] = [];

/**
 * Runs `body`, and then begins all operations that it called, together: on whatever communicators, in whatever order, they do not wait for
 * one another. Returns what `body` returns, mostly the operations' promises. Groups in a group are part of it.
 *
 *     await Promise.all(group(() => [rows.allReduce(a), columns.allReduce(b)]));
 */
export function group<T>(body: () => T): T {
  depth++;
  try {
    return body();
  } finally {
    depth--;
    if (depth === 0) begin();
  }
}

export const inGroup = () => depth > 0;

/** Resolves when the operation, which begins with its group, has ended. */
export function addToGroup<T extends Operation | StreamOperation>(
  native: Native,
  endings: Ends<T>,
  operation: T,
): Promise<void> {
  const ended = Promise.withResolvers<void>();
  queued.push({ native, operation, begun: (number) => endings.of(number, operation), ended });
  return ended.promise;
}

function begin(): void {
  const all = queued;
  queued = [];
  const [first] = all;
  if (first === undefined) return;
  try {
    const numbers = first.native.group(all.map(({ operation }) => operation));
    for (const [index, { begun, ended }] of all.entries()) {
      const waits = begun(numbers[index] ?? 0);
      if (waits === null) ended.resolve();
      else waits.then(ended.resolve, ended.reject);
    }
  } catch (error) {
    for (const { ended } of all) ended.reject(translateError(error));
  }
}
