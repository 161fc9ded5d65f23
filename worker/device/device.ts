import { elementBytes, elementTypes } from '../engine/elements.ts';
import type { ElementType } from '../engine/elements.ts';
import type { Native } from '../engine/native.ts';
import { UsageError, translateError } from '../engine/errors.ts';
import { DeviceBuffer } from './buffer.ts';
import { DeviceStream } from './stream.ts';

/** Where a communicator's buffers lie: memory of a GPU, or of the host device, ordinary memory. */
export class Device {
  readonly type: 'cuda' | 'host';
  /** CUDA's number of the GPU in this process; null: the host device. */
  readonly gpu: number | null;
  readonly #native: Native;
  #stream: DeviceStream | null = null;

  /** For `init`; programs do not call it. */
  constructor(native: Native, gpu: number | null) {
    this.#native = native;
    this.gpu = gpu;
    this.type = gpu === null ? 'host' : 'cuda';
  }

  /** What operations and copies that name no stream run on. */
  get stream(): DeviceStream {
    this.#stream ??= this.newStream();
    return this.#stream;
  }

  /** One that runs at the same time as others. Throws `NcclError` if the device gives none. */
  newStream(): DeviceStream {
    try {
      return new DeviceStream(this.#native, this.gpu);
    } catch (error) {
      throw translateError(error);
    }
  }

  /**
   * Memory for `length` elements, zeroed.
   *
   * @throws UsageError for an unknown type or what is no length
   * @throws NcclError if the device does not have as much
   */
  allocate(type: ElementType, length: number): DeviceBuffer {
    if (!elementTypes.includes(type))
      throw new UsageError(`allocate: type '${type}' is unknown; known are ${elementTypes.join(', ')}`);
    const bytes = length * elementBytes[type];
    if (!Number.isSafeInteger(length) || length < 0 || !Number.isSafeInteger(bytes))
      throw new UsageError(`allocate: ${length} is no number of elements; it must be a whole number from 0`);
    try {
      const block = { handle: this.#native.deviceAllocate(this.gpu, bytes), closed: false };
      return new DeviceBuffer(this.#native, this, block, type, 0, length);
    } catch (error) {
      throw translateError(error);
    }
  }
}
