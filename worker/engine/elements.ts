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
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** In the order of ncclDataType_t. */
export const elementTypes = [
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float16',
  'float32',
  'float64',
  'bfloat16',
  'float8e4m3',
  'float8e5m2',
] as const;

/** What an element is to the engine. */
export type ElementType = (typeof elementTypes)[number];

/** Bytes of one element. */
export const elementBytes: Readonly<Record<ElementType, number>> = {
  int8: 1,
  uint8: 1,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
  float16: 2,
  float32: 4,
  float64: 8,
  bfloat16: 2,
  float8e4m3: 1,
  float8e5m2: 1,
};

/** Element types by the name of the array's class; null if the class determines only the element size. */
const ofArray: Readonly<Record<string, ElementType | null>> = {
  Int8Array: 'int8',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Uint16Array: null,
  Int32Array: 'int32',
  Uint32Array: 'uint32',
  BigInt64Array: 'int64',
  BigUint64Array: 'uint64',
  Float16Array: 'float16',
  Float32Array: 'float32',
  Float64Array: 'float64',
};

const numbers: Readonly<Partial<Record<string, number>>> = Object.fromEntries(
  Object.entries(ofArray).flatMap(([name, type]) => (type === null ? [] : [[name, elementTypes.indexOf(type)]])),
);

/** The number of the type of an array that is copied to or from elements of `type`, whose bits it may hold where no array has such elements. */
export function typeOfArray(array: NcclArray, call: string, type: ElementType): number {
  const own = ofArray[array[Symbol.toStringTag]];
  const bits = !Object.values(ofArray).includes(type) || own === null;
  return elementType(array, { call, use: 'copy' }, bits ? type : undefined);
}

/** What an array is to its call, for messages. */
export interface Role {
  readonly call: string;
  readonly use: 'send' | 'receive into' | 'recv' | 'copy';
}

function roleName({ call, use }: Role): string {
  return call === use ? `the array to ${use}` : `${call}: the array to ${use}`;
}

/**
 * The number of the array's element type, or of `asked`, whose bits the array then holds. `buffer` is the array's; a
 * parameter, because V8 takes long to return it.
 *
 * @throws UsageError for an array that the engine cannot use
 */
export function elementType(array: NcclArray, role: Role, asked?: ElementType, buffer: object = array.buffer): number {
  const number = numbers[array[Symbol.toStringTag]];
  const fixed =
    buffer instanceof ArrayBuffer
      ? !buffer.resizable && !buffer.detached
      : !(buffer instanceof SharedArrayBuffer && buffer.growable);
  if (asked === undefined && fixed && number !== undefined) return number;
  return unusualType(array, roleName(role), asked);
}

function unusualType(array: NcclArray, what: string, asked: ElementType | undefined): number {
  const name: string = array[Symbol.toStringTag];
  const known = ofArray[name];
  if (known === undefined) {
    const given = Array.isArray(array) ? 'an ordinary array' : `of an unknown kind (${name})`;
    throw new UsageError(
      `${what} is ${given}; write Float32Array.from(array), or take one of ${Object.keys(ofArray).join(', ')}`,
    );
  }
  const { buffer } = array;
  if (buffer instanceof ArrayBuffer ? buffer.resizable : buffer.growable)
    throw new UsageError(`${what} lies in a resizable buffer, which could shrink while the engine uses it`);
  if (buffer instanceof ArrayBuffer && buffer.detached)
    throw new UsageError(`${what} has no memory: its buffer was transferred or closed`);
  const type = asked ?? known;
  if (type === null)
    throw new UsageError(`${what} is a ${name}: say what its elements are, with type: 'bfloat16' or type: 'float16'`);
  const size: number | undefined = elementBytes[type];
  if (size === undefined) throw new UsageError(`type '${type}' is unknown; known are ${elementTypes.join(', ')}`);
  if (size !== array.BYTES_PER_ELEMENT)
    throw new UsageError(
      `${what} is a ${name}, whose elements have ${array.BYTES_PER_ELEMENT} bytes; a ${type} has ${size}`,
    );
  return elementTypes.indexOf(type);
}
