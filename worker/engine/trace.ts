/**
 * NCCLRUN_TRACE_NATIVE=1 writes every call from TypeScript into native code to stderr, with its arguments and how long it took;
 * NCCLRUN_TRACE_NATIVE=/some/file appends to that file instead.
 */
import { appendFileSync, writeSync } from 'node:fs';
import type { Native } from './native.ts';

/** `native` itself, unless the environment asks for its trace. */
export function traced(native: Native): Native {
  const target = process.env['NCCLRUN_TRACE_NATIVE'] ?? '';
  if (target === '' || target === '0') return native;
  if (target === '1') return traceTo(native, (line) => writeSync(2, line));
  return traceTo(native, (line) => appendFileSync(target, line));
}

/** Exported for tests. */
export function traceTo(native: Native, write: (line: string) => void): Native {
  return new Proxy(native, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        const call = `ncclrun native [${process.pid}] ${String(name)}(${given.map(shown).join(', ')})`;
        const begun = process.hrtime.bigint();
        const log = (outcome: string) => {
          const microseconds = Number(process.hrtime.bigint() - begun) / 1000;
          write(`${call} ${outcome} ${microseconds.toFixed(1)} us\n`);
        };
        try {
          const result: unknown = Reflect.apply(member, target, given);
          log('took');
          if (result instanceof Promise) {
            result.then(
              () => log('resolved after'),
              (error: unknown) => log(`rejected (${String(error)}) after`),
            );
          }
          return result;
        } catch (error) {
          log(`threw (${String(error)}) after`);
          throw error;
        }
      };
    },
  });
}

function shown(value: unknown): string {
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${value.byteLength} bytes)`;
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
    case 'number':
    case 'bigint':
    case 'boolean':
      return value.toString();
    case 'function':
      return 'function';
    default:
      return value === null ? 'null' : 'handle';
  }
}
