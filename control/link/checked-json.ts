/** JSON of a frame, checked against a schema: agents and files may be damaged, and a rank's memory may hold anything. */
import * as v from 'valibot';
import { ProtocolError } from '../messages/protocol-error.ts';

/** `what` names the message in errors. @throws ProtocolError */
export function checkedJson<T>(schema: v.GenericSchema<T>, payload: Uint8Array, what: string, maxBytes: number): T {
  if (payload.length > maxBytes) throw new ProtocolError(`${what}: ${payload.length} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
  } catch {
    throw new ProtocolError(`${what}: ${payload.length} bytes that are no JSON`);
  }
  const result = v.safeParse(schema, json, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new ProtocolError(`${what}: ${v.getDotPath(issue) ?? 'the message'}: ${issue.message}`);
}
