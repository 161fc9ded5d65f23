/** Detects a job that another launcher has started on several hosts, whose ranks a private agent cannot connect. */
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { decodeMerged, encodeKeyFailed } from '../../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND } from '../../control/messages/rendezvous.ts';

interface Spread {
  /** Number of processes of the job. */
  readonly all: number;
  readonly here: number;
  /** Variable with the number of local processes. */
  readonly source: string;
}

/** Variables of torchrun and Open MPI: number of all processes, number on this host. */
const VARIABLES = [
  ['WORLD_SIZE', 'LOCAL_WORLD_SIZE'],
  ['OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_SIZE'],
] as const;

/** Null if the environment shows no process on another host. */
export function spreadOf(environment: Readonly<Record<string, string | undefined>>): Spread | null {
  for (const [ofAll, source] of VARIABLES) {
    const [all, here] = [Number(environment[ofAll]), Number(environment[source])];
    if (here >= 1 && all > here) return { all, here, source };
  }
  return null;
}

/**
 * Refuses ranks that join a communicator of all processes, because those on other hosts cannot join. Returns null for any other frame.
 * Throws ProtocolError if it is malformed.
 */
export function refuseSpread({ all, here, source }: Spread, frame: Frame): Frame | null {
  if (frame.kind !== FrameKind.merged) return null;
  const { key, size } = decodeMerged(frame.payload);
  if (key.round !== JOIN_ROUND || size < all) return null;
  const sentence = `${size} ranks, of which ${here} ${here === 1 ? 'is' : 'are'} on this host (${source}): without ncclrun the ranks of a communicator are on one host. Start the program with: ncclrun -H HOST1:N,HOST2:N PROGRAM`;
  return makeFrame(FrameKind.keyFailed, {
    payload: encodeKeyFailed({ key, result: NcclResult.invalidUsage, sentence }),
  });
}
