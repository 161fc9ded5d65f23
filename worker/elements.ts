/// <reference lib="es2025.float16" preserve="true" />
/** Typed arrays and the element types of the engine. */
import { UsageError } from './errors.ts';

/** Arrays whose elements the engine can move and reduce. Plain memory, or a SharedArrayBuffer; not a resizable buffer. */
export type NcclArray =
  | Float32Array
  | Float64Array
  | Float16Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** ncclDataType_t by the name of the array's class. */
const types: Readonly<Record<string, number>> = {
  Int8Array: 0,
  Uint8Array: 1,
  Uint8ClampedArray: 1,
  Int32Array: 2,
  Uint32Array: 3,
  BigInt64Array: 4,
  BigUint64Array: 5,
  Float16Array: 6,
  Float32Array: 7,
  Float64Array: 8,
};

/** How ranks' values become one. */
export type ReduceOperator = 'sum' | 'prod' | 'max' | 'min';

/** ncclRedOp_t by name. */
const operators: Readonly<Record<ReduceOperator, number>> = { sum: 0, prod: 1, max: 2, min: 3 };

/** @throws UsageError for an array that the engine cannot use; `what` names it in the message */
export function elementType(array: NcclArray, what: string): number {
  const name: string = array[Symbol.toStringTag];
  const type = types[name];
  if (type === undefined) throw new UsageError(`${what} is a ${name}; known are ${Object.keys(types).join(', ')}`);
  const { buffer } = array;
  const movable = buffer instanceof ArrayBuffer ? buffer.resizable : buffer.growable;
  if (movable) throw new UsageError(`${what} lies in a resizable buffer, which could shrink while the engine uses it`);
  return type;
}

/** @throws UsageError for an unknown operator */
export function operatorNumber(operator: ReduceOperator): number {
  const number: number | undefined = operators[operator];
  if (number === undefined) {
    throw new UsageError(`operator '${operator}' is unknown; known are ${Object.keys(operators).join(', ')}`);
  }
  return number;
}
