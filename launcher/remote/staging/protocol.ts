/**
 * The messages between a host without ncclrun and the launcher over the remote command's streams, before there is an agent. The host's
 * side is a shell script (remote-script.ts) and sends FrameKind.staging without payload: `flags` is the message, `subject` its argument.
 *
 *     host                                   launcher
 *                                            order          (sent with the start; the script drops it)
 *     unpacker
 *                                            its size       "bytes\n"; 0: there is none
 *     next                                   the unpacker   (native/unpack; what follows is its talk, where it can serve)
 *     wanted (subject: ArchiveForm)
 *                                            "\n"            (a sign of life, each second until the archive is there)
 *                                            terms          "pieces pieceBytes lastPieceBytes sha256\n"
 *     next                                   a piece of the archive
 *     …
 *     staged                                 order          (for the agent, which replaces the shell)
 *
 * The host sends `alive` when its shell starts, and every second while the script or the starting agent makes progress.
 *
 * The launcher sends only what the host requests, one item at a time, because some tools read ahead.
 */

export const StagingMessage = {
  wanted: 1,
  next: 2,
  staged: 3,
  /** The agent from the cache is started; the order that came first is its own. */
  cached: 4,
  /** `subject` is a StagingRefusal; the tools' errors are on stderr. */
  failed: 5,
  unpacker: 6,
  /** The host is at work: its shell runs, a copy is unpacked, an agent starts. */
  alive: 7,
  /** The watchdog ends an agent that does not come up; why is on stderr. */
  hung: 8,
} as const;

/** 128 + SIGVTALRM: the status of an agent that its watchdog has ended (native/watchdog). */
export const HUNG_STATUS = 154;

export const StagingRefusal = {
  machine: 1,
  directory: 2,
  unpack: 3,
  hash: 4,
  start: 5,
  /** Every candidate directory is writable by others; stderr has the reasons. */
  untrusted: 6,
} as const;

/** The shell copies each piece through a pipe; the launcher holds one for each host that it serves. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** Exit status of the unpacker; a shell that cannot execute it returns 126 or 127. */
export const UnpackerStatus = {
  unpacked: 0,
  /** It has written and read nothing, so the host's own tools may serve. */
  cannotServe: 1,
  failed: 2,
  otherHash: 3,
} as const;

/** What the shell with its tools asks for, and the unpacker. */
export const ArchiveCompression = { gzip: 0, zstd: 1 } as const;
