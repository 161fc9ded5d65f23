/** Bytes that are no message of ours: cut short, oversized, of another version, of an unknown kind. The sender is refused. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}
