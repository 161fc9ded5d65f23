/** Small fixed payloads of FrameKind; frame.ts lists the kind of each. */
import { ByteReader, ByteWriter } from './bytes.ts';
import { SpawnStep } from './guardian.ts';
import { ProtocolError } from './protocol-error.ts';

interface Spawned {
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly time: number;
}

export interface SpawnFailed {
  readonly errno: number;
  readonly step: SpawnStep;
}

/** Exit of a process, with a status or by a signal; exactly one of both is not null. */
export interface Exit {
  readonly exitCode: number | null;
  readonly signalNumber: number | null;
}

export interface Exited extends Exit {
  /** Milliseconds since 1970. */
  readonly time: number;
}

export function decodeSpawned(payload: Uint8Array): Spawned {
  const reader = new ByteReader(payload, 'spawned');
  const spawned = { pid: reader.u32('pid'), time: milliseconds(reader.u64('time')) };
  reader.end();
  return spawned;
}

export function encodeSpawnFailed({ errno, step }: SpawnFailed): Uint8Array {
  return new ByteWriter(8).u32(errno).u32(step).finish();
}

export function decodeSpawnFailed(payload: Uint8Array): SpawnFailed {
  const reader = new ByteReader(payload, 'spawnFailed');
  const errno = reader.u32('errno');
  const code = reader.u32('step');
  reader.end();
  const step = Object.values(SpawnStep).find((value) => value === code);
  if (step === undefined) throw new ProtocolError(`spawnFailed: step ${code} is unknown`);
  return { errno, step };
}

/** Decodes the status of waitpid: the low 7 bits are the signal, the next byte is the exit code. */
export function exitOf(waitStatus: number): Exit {
  const signal = waitStatus & 0x7f;
  return signal === 0
    ? { exitCode: (waitStatus >> 8) & 0xff, signalNumber: null }
    : { exitCode: null, signalNumber: signal };
}

export function decodeExited(payload: Uint8Array): Exited {
  const reader = new ByteReader(payload, 'exited');
  const status = reader.i32('status');
  const time = milliseconds(reader.u64('time'));
  reader.end();
  return { ...exitOf(status), time };
}

/** Payload of outputCredit and stdinCredit, in bytes. */
export function encodeCredit(bytes: number): Uint8Array {
  return new ByteWriter(8).u64(bytes).finish();
}

export function decodeCredit(payload: Uint8Array): number {
  const reader = new ByteReader(payload, 'credit');
  const bytes = reader.size('bytes');
  reader.end();
  return bytes;
}

const STAMP_SPAN = 2 ** 32;

/** Time at which the host read the output: the one nearest to `now` whose low 32 bits equal the frame's stamp. Milliseconds since 1970. */
export function outputTime(stamp: number, now: number): number {
  const behind = (now - stamp) % STAMP_SPAN;
  return behind < STAMP_SPAN / 2 ? now - behind : now - behind + STAMP_SPAN;
}

export function encodeSignal(signalNumber: number): Uint8Array {
  return new ByteWriter(4).i32(signalNumber).finish();
}

export function decodeSignal(payload: Uint8Array): number {
  const reader = new ByteReader(payload, 'signal');
  const signalNumber = reader.i32('number');
  reader.end();
  return signalNumber;
}

/** Milliseconds; 0 suspends the lease. */
export function encodeLease(leaseMs: number): Uint8Array {
  return new ByteWriter(4).u32(leaseMs).finish();
}

/** The guardian's word that the lease ran out: how long it had heard nothing, in milliseconds. */
export function decodeLeaseEnd(payload: Uint8Array): number {
  const reader = new ByteReader(payload, 'lease');
  const silentMs = reader.u32('silence');
  reader.end();
  return silentMs;
}

/** The reader's CLOCK_MONOTONIC. */
export function encodeClock(nanoseconds: bigint): Uint8Array {
  return new ByteWriter(8).u64(nanoseconds).finish();
}

export function decodeClock(payload: Uint8Array): number {
  const reader = new ByteReader(payload, 'clock');
  const nanoseconds = reader.size('nanoseconds');
  reader.end();
  return nanoseconds;
}

function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000_000n);
}
