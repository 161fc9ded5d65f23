/**
 * Messages of the rendezvous across hosts, between agents and launcher on the link, merged per host.
 * A key is 128 bytes of unique id, u32 epoch, u32 round; round JOIN_ROUND makes a communicator, POST_ROUND stands for post and fetch.
 *
 *   merged      agent → launcher: key, u32 size, u32 entries, entries × (u32 rank, i32 rank in the job (-1 unknown), u32 pid, u32 bytes, bytes)
 *   completed   launcher → agent: key, u32 size, size × (u32 bytes, bytes); of a round that splits, the plans of the new communicators follow
 *   planBody    launcher → agent: key, bytes: the part of the HostPlan that all hosts share; comes before hostPlan
 *   hostPlan    launcher → agent: key, u64 segmentBytes, u32 bytes, bytes: the HostPlan's header, then what follows planBody in it
 *   keyFailed   launcher → agent: key, u32 ncclResult_t, str sentence; also strays, doubles, wrong sizes
 *   routed      in both directions: a post that crosses hosts: key, u32 from, u32 to, u32 tag, u32 bytes, bytes;
 *               flags ROUTED_WANTED, agent → launcher: a rank of this host fetches it (0 bytes)
 *   left        agent → launcher: key, u32 rank (ALL_RANKS: every rank of this host), u32 how (0 finalized, 1 aborted, 2 died, 3 missed:
 *               a rank of this host failed because it lacked this one), str reason; subject: the rank in the job to blame for the
 *               consequences (ALL_RANKS: none, or the rank's own exit shows it); flags ENDED_CLEANLY with how 2: the process exited with status 0.
 *               How 4, suspected: a rank of this host, the subject, failed after it had lost this one, whose exit the launcher may not
 *               know yet; precedes the subject's exit
 *               How 5, differed: the ranks' calls differ, no rank left. How 6, revoked: the rank has ended its pending operations
 *               How 7, 8 and 9: as 1 and 2, or it stays but its operations have failed; the others fail only where they wait for it.
 *               The same holds for how 0 with a rank whose communicator other ranks of its host keep; the reason names the rank
 *   calls       agent → launcher: key, u32 ranks, ranks × (calls.ts): the calls of ranks whose wait has stalled
 *   broken      launcher → agent: key, u32 rank, u32 ncclResult_t, str sentence: raise the abort word; subject: as in left;
 *               flags ENDED_CLEANLY: only once a rank's wait has stalled; RANK_GONE: only ranks that wait for this rank (with
 *               ncclInvalidUsage it left in order, and the sentence names it)
 */
export const JOIN_ROUND = 0xffff_ffff;
export const POST_ROUND = 0xffff_fffe;
/**
 * Rounds from here to POST_ROUND split the communicator of their id; a contribution is i32 colour, i32 order, PeerInfo, u32 count,
 * count × u32 rank that is left out.
 */
export const SPLIT_ROUND = 0x8000_0000;
/** First of the rounds that work on a broken communicator and exclude the ranks that all others leave out. */
export const SHRINK_ROUND = 0xc000_0000;
export const ROUTED_WANTED = 1;
export const ENDED_CLEANLY = 1;
/** Flag of a `left` frame with how `suspected`: its rank is a rank of the job, in a communicator that the launcher does not know. */
export const NAMES_JOB_RANK = 2;
export const RANK_GONE = 2;

export function isSplitRound(round: number): boolean {
  return round >= SPLIT_ROUND && round < POST_ROUND;
}

export function isShrinkRound(round: number): boolean {
  return round >= SHRINK_ROUND && round < POST_ROUND;
}

export const LeftHow = {
  finalized: 0,
  aborted: 1,
  died: 2,
  missed: 3,
  suspected: 4,
  differed: 5,
  revoked: 6,
  abortedAlone: 7,
  failedAlone: 8,
  brokenAlone: 9,
} as const;
/** True if other ranks fail only where they wait for the rank that left. */
export function isAlone(how: LeftHow): boolean {
  return how === LeftHow.abortedAlone || how === LeftHow.failedAlone || how === LeftHow.brokenAlone;
}
export type LeftHow = (typeof LeftHow)[keyof typeof LeftHow];
