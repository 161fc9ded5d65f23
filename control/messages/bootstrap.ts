/**
 * Messages between an engine and its host's agent over the agent's Unix socket (NCCLRUN_AGENT).
 * The native twin is native/agent/messages.h. Strings are u32 length + UTF-8 bytes; `key` is 128 bytes of unique id:
 *   u64 magic (UNIQUE_ID_MAGIC), u64 hash of the job id (FNV-1a, 0 outside a job), 16 random bytes,
 *   of an id that leaves a process outside a job: u64 host identity (never 0), u32 user id, u32 0, 16 bytes session; zero bytes to the end.
 * An engine refuses an id without the magic, and one of another job; without an agent in its environment one of another host, user or session.
 *
 * Every request carries a number, and the agent sends exactly one answer with the same number. Any number of requests may be in
 * flight. `refused` may answer each of them.
 *
 *   engine → agent
 *   engineHello  u32 protocol (BOOTSTRAP_PROTOCOL), u32 pid as the engine sees it, i32 rank in the job (-1 unknown),
 *                str jobId, str engineVersion                       answer: welcome
 *   join         key, u32 epoch, u32 size, u32 rank, PeerInfo       answer: plan     a new communicator
 *   split        key of the communicator, u32 epoch, u32 round (SPLIT_ROUND or SHRINK_ROUND + its number), u32 size, u32 rank, i32 colour,
 *                i32 order, PeerInfo, u32 count, count × u32 rank that is left out, ascending (0 where the round is a SPLIT_ROUND)
 *                               answer: plan of the ranks with this colour, or an empty table where the colour is NO_COLOUR
 *   gather       key, u32 epoch, u32 round, u32 size, u32 rank, u32 bytes, bytes
 *                                                                   answer: table    all-gather; a barrier has 0 bytes
 *   post         key, u32 epoch, u32 from, u32 to, u32 tag, u32 bytes, bytes
 *                                                                   answer: delivery with 0 bytes, once it is stored
 *   fetch        key, u32 epoch, u32 from, u32 to, u32 tag          answer: delivery
 *   leave        key, u32 epoch, u32 rank, u32 how (0 finalized, 1 aborted by its program, 2 failed, 5 differed: it
 *                stays, but the ranks' calls do not fit together, 6 revoked: it stays, but has ended what was under way,
 *                7 and 8: as 1 and 2 after the set-up: others fail only where they wait for it, 9: so, too, but it stays), str reason,
 *                u32 round (JOIN_ROUND: the communicator; a round of splits: that one only)     no answer
 *   telemetry    nothing: the engine's pages have no slot left for a communicator that it is about to join
 *                                                                   answer: telemetry
 *
 *   agent → engine
 *   welcome      u32 hostIndex, u32 hostCount, u32 rankCount, u32 epoch, str jobId, str hostName
 *                + fd: the first telemetry page of this engine (native/include/ncclrun.h, ncclrunTelemetryPage)
 *                + fd: its flight recorder (ncclrunRecorder)
 *   telemetry    nothing + fd: another telemetry page
 *   plan         u32 localIndex, key and u32 epoch of the new communicator, u32 size, u32 rank in it + fd: the HostPlan, sealed and read-only + fd: the host segment
 *   table        u32 size, size × (u32 bytes, bytes)
 *   delivery     u32 bytes, bytes
 *   refused      u32 ncclResult_t, str sentence
 *   aborted      key, u32 epoch, u32 rank that broke the communicator (0xffffffff: none in particular), u32 ncclResult_t,
 *                str sentence; request is 0. The abort word of the host segment carries the same sentence, sooner.
 *   peerGone     key, u32 epoch, u32 rank that receives the notice, u32 rank that is gone while others go on, u32 ncclResult_t (ncclInvalidUsage where it
 *                left in order), str sentence for operations that need it, u32 1 where the receiving rank has waited long; request is 0
 *
 * PeerInfo, 64 bytes: a rank's contribution to a communicator
 *   u32 version (1), u32 device (0 host, 1 cuda), u32 cudaDevice, u32 listenPort (0: no listener), u64 hostHash, u64 pidHash,
 *   u64 shmDevice, u64 busId, u32 flags (bit 0 GPUDirect), u32 multiprocessors,
 *   u32 maxChannels, u32 communicators
 */
export const BOOTSTRAP_PROTOCOL = 5;
export const UNIQUE_ID_BYTES = 128;
/** "NCCLRUN1", little-endian. */
export const UNIQUE_ID_MAGIC = 0x314e_5552_4c43_434en;
export const PEER_INFO_BYTES = 64;
export const NO_RANK = 0xffff_ffff;
/** Colour of a rank that joins none of the new communicators (NCCL_SPLIT_NOCOLOR). */
export const NO_COLOUR = -1;

/** ncclResult_t as the wire carries it. */
export const NcclResult = {
  success: 0,
  unhandledCudaError: 1,
  systemError: 2,
  internalError: 3,
  invalidArgument: 4,
  invalidUsage: 5,
  remoteError: 6,
  inProgress: 7,
} as const;
export type NcclResult = (typeof NcclResult)[keyof typeof NcclResult];
