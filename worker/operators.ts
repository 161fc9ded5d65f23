/** How ranks' values become one, as the program says it and as the engine takes it. */
import { elementTypes } from './engine/elements.ts';
import type { ElementType } from './engine/elements.ts';
import { UsageError } from './engine/errors.ts';
import { smallFloatBits } from './small-float.ts';

/** A sum in which each rank multiplies its own elements by a factor first. */
export interface PreMultipliedSum {
  readonly preMulSum: number | bigint;
}

/** 'avg' is the sum divided by the number of ranks; of whole numbers it is rounded towards zero. */
export type ReduceOperator = (typeof named)[number] | PreMultipliedSum;

/** In the order of ncclRedOp_t. */
const named = ['sum', 'prod', 'max', 'min', 'avg'] as const;

interface EngineOperator {
  readonly operator: number;
  /** One element, for a pre-multiplied sum. */
  readonly factor: Uint8Array | null;
}

const SUM: EngineOperator = { operator: 0, factor: null };

/**
 * `type` is an ncclDataType_t.
 *
 * @throws UsageError for an unknown operator, or a factor that the type cannot hold
 */
export function operatorOf(operator: ReduceOperator, type: number): EngineOperator {
  if (operator === 'sum') return SUM;
  if (typeof operator === 'object' && 'preMulSum' in operator) {
    const typeName = elementTypes[type] ?? 'uint8';
    return { operator: 0, factor: factorBytes(operator.preMulSum, typeName) };
  }
  const number = named.findIndex((name) => name === operator);
  if (number !== -1) return { operator: number, factor: null };
  const known = `${named.join(', ')}, { preMulSum: factor }`;
  throw new UsageError(`operator ${JSON.stringify(operator)} is unknown; known are ${known}`);
}

function factorBytes(factor: number | bigint, type: ElementType): Uint8Array {
  const element = oneElement(factor, type);
  if (element !== null) return new Uint8Array(element.buffer);
  throw new UsageError(`the factor ${factor} of the pre-multiplied sum is no ${type}`);
}

/** null: the type cannot hold it. */
function oneElement(factor: number | bigint, type: ElementType): ArrayBufferView<ArrayBuffer> | null {
  const wide = type === 'int64' || type === 'uint64';
  if (typeof factor !== (wide ? 'bigint' : 'number')) return null;
  switch (type) {
    case 'int8':
      return exact(Int8Array.of(Number(factor)), factor);
    case 'uint8':
      return exact(Uint8Array.of(Number(factor)), factor);
    case 'int32':
      return exact(Int32Array.of(Number(factor)), factor);
    case 'uint32':
      return exact(Uint32Array.of(Number(factor)), factor);
    case 'int64':
      return exact(BigInt64Array.of(BigInt(factor)), factor);
    case 'uint64':
      return exact(BigUint64Array.of(BigInt(factor)), factor);
    case 'float16':
      return Float16Array.of(Number(factor));
    case 'float32':
      return Float32Array.of(Number(factor));
    case 'float64':
      return Float64Array.of(Number(factor));
    case 'bfloat16':
      return Uint16Array.of(smallFloatBits(Number(factor), { significandBits: 8, exponentBits: 8 }));
    case 'float8e4m3':
      return Uint8Array.of(smallFloatBits(Number(factor), { significandBits: 4, exponentBits: 4 }));
    case 'float8e5m2':
      return Uint8Array.of(smallFloatBits(Number(factor), { significandBits: 3, exponentBits: 5 }));
    default:
      return type satisfies never;
  }
}

/** Whole numbers are taken as they are or not at all. */
function exact<T extends ArrayBufferView<ArrayBuffer> & { readonly 0?: number | bigint }>(
  element: T,
  factor: number | bigint,
): T | null {
  return element[0] === factor ? element : null;
}
