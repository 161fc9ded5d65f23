/** What the program interface throws. */

/** By ncclResult_t. */
const codes = [
  'success',
  'unhandledCudaError',
  'systemError',
  'internalError',
  'invalidArgument',
  'invalidUsage',
  'remoteError',
  'inProgress',
  'timeout',
] as const;

/** `remoteError`: another rank died, aborted or lost its connection. `systemError`: the operating system refused something. */
export type NcclErrorCode = (typeof codes)[number];

/** The engine refused an operation or could not finish it; `message` is the engine's sentence, `code` the name of its ncclResult_t. */
export class NcclError extends Error {
  readonly code: NcclErrorCode;

  static {
    this.prototype.name = 'NcclError';
  }

  constructor(code: NcclErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The call itself is wrong: arrays of unlike lengths or types, an unknown operator, a rank that does not exist, use after close. */
export class UsageError extends Error {
  static {
    this.prototype.name = 'UsageError';
  }
}

/** An error of the native addon as one of ours; anything else comes back as it is. Its stack begins below `above`, at who called that. */
export function translateError(error: unknown, above: (...given: never[]) => unknown = translateError): unknown {
  if (!(error instanceof Error) || error.name !== 'NativeError' || !('code' in error)) return error;
  const code = typeof error.code === 'number' ? codes[error.code] : 'systemError';
  const translation = new NcclError(code ?? 'internalError', error.message);
  Error.captureStackTrace(translation, above);
  return translation;
}

/** What `begin` returns, with errors translated whether they come at once or later. */
export async function translated<T>(begin: () => Promise<T>): Promise<T> {
  try {
    return await begin();
  } catch (error) {
    throw translateError(error, translated);
  }
}
