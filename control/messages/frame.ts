/**
 * The one framing of every byte stream between our processes: launcher, agent, guardian and engine.
 * The native twin is native/base/frame.h; both list the kinds in the same order.
 *
 *   offset 0   u32  bytes of payload that follow the header (at most MAX_PAYLOAD_BYTES)
 *          4   u8   FRAME_VERSION
 *          5   u8   kind
 *          6   u16  flags, by kind
 *          8   u32  subject, by kind: mostly a rank
 *         12   u32  request: number of a request, which its answer repeats; in output frames the time of the read
 *
 * All integers are little-endian.
 */
export const FRAME_HEADER_BYTES = 16;
export const FRAME_VERSION = 1;
export const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024;

/** Subject of a frame that concerns every rank of a host. */
export const ALL_RANKS = 0xffff_ffff;

export const FrameKind = {
  // agent ↔ guardian; those marked (link) travel on between agent and launcher unchanged
  spawn: 0x10, // agent → guardian: SpawnOrder (guardian.ts)
  spawned: 0x11, // (link) subject = rank; payload u32 pid, u64 realtime ns
  spawnFailed: 0x12, // (link) subject = rank; payload u32 errno, u32 step (SpawnStep)
  exited: 0x13, // (link) subject = rank; payload i32 wait status, u64 realtime ns
  output: 0x14, // (link) subject = rank; flags OUTPUT_*; request = low 32 bits of realtime ms; payload whole lines (or a piece)
  outputCredit: 0x15, // (link) launcher → agent → guardian; payload u64 additional bytes; the receiver closes the link of a sender that exceeds its credit
  stdin: 0x16, // (link) launcher → agent → guardian; subject = rank, or ALL_RANKS that read; flags STDIN_END
  stdinCredit: 0x17, // (link) guardian → agent → launcher; subject = rank; payload u64 bytes taken by the rank
  signal: 0x18, // (link) subject = rank or ALL_RANKS; payload i32 signal number
  lease: 0x19, // agent → guardian; payload u32 ms; 0 suspends the lease (the job is stopped by ^Z); guardian → agent: it ran out, after so many ms of silence
  heartbeat: 0x1a, // in both directions; no payload. Agents forward the launcher's to their child agents, and none upwards
  end: 0x1b, // (link) launcher → agent → guardian: kill the remaining processes and their descendants
  ended: 0x1c, // (link) guardian → agent → launcher: the host has no process of the job any more, or none that the guardian can kill
  notice: 0x1d, // guardian → agent: payload one UTF-8 sentence for the user
  pmi: 0x1e, // in both directions between guardian and agent; subject = rank; payload bytes of its PMI connection; to the guardian with flags PMI_*
  readStack: 0x1f, // agent → guardian: which stacks to read, and its answers (stack.ts)

  // launcher ↔ agent
  order: 0x30, // launcher → agent, first frame, sent with the exec; payload JSON AgentOrder
  hello: 0x31, // agent → launcher; payload JSON AgentHello
  start: 0x32, // launcher → agent, once every host has sent its hello: start the ranks; payload JSON AgentStart
  failure: 0x33, // agent → launcher; payload JSON AgentReport
  suspend: 0x34, // launcher → agent: flags 1 suspends leases, 0 resumes them; agent → launcher: the guardian has carried out everything up to a 1
  staging: 0x35, // in both directions, before an agent runs: copies ncclrun to the host (launcher/remote/staging/protocol.ts)
  invitation: 0x36, // launcher → agents that a resource manager starts: addresses to connect to and the job's key; payload JSON Invitation
  rankPositions: 0x37, // launcher → agent: where are your ranks in their communicators? payload JSON RankPositionsQuery; an AgentReport answers
  childAgent: 0x38, // in both directions: frames of child agents; subject = number of the child agent; flags: ChildMessage (child-agent.ts)
  reach: 0x39, // launcher → agent: by which addresses do hosts reach each other? payload JSON ReachQuestion (reach.ts); an AgentReport answers
  aggregate: 0x3a, // launcher → agent: start aggregators; payload JSON AggregateOrder (aggregator.ts); an AgentReport answers
  aggregatorOrder: 0x3b, // agent → aggregator; payload: encodeAggregatorOrder
  aggregatorUp: 0x3c, // aggregator → agent; payload: decodeAggregatorUp

  recorder: 0x3d, // launcher → agent: send what your processes' flight recorders hold; payload JSON RecorderQuery (recorder.ts); agent → launcher: payload JSON RecorderAnswer, as many as there are
  stacks: 0x3e, // launcher → agent: read your ranks' stacks; payload JSON StackQuery (stack.ts); agent → launcher: payload JSON StackAnswer, one for each rank and an end
  clock: 0x3f, // launcher → agent: what does your CLOCK_MONOTONIC say? agent → launcher: payload u64 ns

  // engine ↔ agent (bootstrap.ts has the payloads)
  engineHello: 0x50,
  welcome: 0x51,
  join: 0x52,
  plan: 0x53,
  gather: 0x54,
  table: 0x55,
  post: 0x56,
  fetch: 0x57,
  delivery: 0x58,
  refused: 0x59,
  leave: 0x5a,
  aborted: 0x5b,
  split: 0x5c,
  telemetry: 0x5d,
  peerGone: 0x5e,

  // agent ↔ launcher, the rendezvous across hosts (rendezvous.ts has the payloads)
  merged: 0x60,
  completed: 0x61,
  hostPlan: 0x62,
  keyFailed: 0x63,
  routed: 0x64,
  left: 0x65,
  broken: 0x66,
  planBody: 0x67,
  calls: 0x68,

  // agent ↔ launcher: a host's topology, sent once for equal hosts (machine.ts)
  machineKey: 0x69, // agent → launcher; payload the topology's hash
  machineWanted: 0x6a, // launcher → agent: send the topology, which no other host has sent
  machine: 0x6b, // agent → launcher; payload Machine
  machineKnown: 0x6c, // launcher → agent: ranks may join communicators
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

export const OUTPUT_STDERR = 1;
/** The payload does not end in a newline: the next frame of the same rank and stream continues the line. */
export const OUTPUT_PARTIAL = 2;
/** End of the stream; the payload (perhaps empty) is its last part. */
export const OUTPUT_END = 4;
export const STDIN_END = 1;
/** The agent has processed the rank's last frame: the guardian may read more of the rank's PMI connection. */
export const PMI_READ = 1;
/** The guardian closes the rank's PMI connection after the payload. */
export const PMI_CLOSE = 2;

export interface Frame {
  readonly kind: FrameKind;
  readonly flags: number;
  readonly subject: number;
  readonly request: number;
  readonly payload: Uint8Array;
}
