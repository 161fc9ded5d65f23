/**
 * The rendezvous across hosts: what agents and the launcher say to each other on the link, merged per host.
 * A key is 128 bytes of unique id, u32 epoch, u32 round; round JOIN_ROUND makes a communicator.
 *
 *   merged      agent → launcher: key, u32 size, u32 entries, entries × (u32 rank, u32 bytes, bytes)
 *   completed   launcher → agent: key, u32 size, size × (u32 bytes, bytes)
 *   hostPlan    launcher → agent: key, u64 segmentBytes, u32 bytes, bytes of HostPlan (control/plan/encode.ts)
 *   keyFailed   launcher → agent: key, u32 ncclResult_t, str sentence; also strays, doubles, wrong sizes
 *   routed      both ways: a post that crosses hosts: key, u32 from, u32 to, u32 tag, u32 bytes, bytes
 *   left        agent → launcher: key, u32 rank, u32 how (0 finalized, 1 aborted, 2 died), str reason
 *   broken      launcher → agent: key, u32 rank, u32 ncclResult_t, str sentence: raise the abort word
 */
export const JOIN_ROUND = 0xffff_ffff;
