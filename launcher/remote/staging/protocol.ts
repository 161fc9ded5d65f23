/**
 * What a host without ncclrun and the launcher say to each other over the remote command's streams, before there is an agent. The host's
 * side is a shell script (remote-script.ts) and speaks in FrameKind.staging without payload: `flags` says what, `subject` more.
 *
 *     host                                   launcher
 *                                            order          (sent with the start; the script drops it)
 *     unpacker
 *                                            its size       "bytes\n"; 0: there is none
 *     next                                   the unpacker   (native/unpack; what follows is its talk, where it can serve)
 *     wanted (subject: ArchiveForm)
 *                                            terms          "pieces pieceBytes lastPieceBytes sha256\n"
 *     next                                   a piece of the archive
 *     …
 *     staged                                 order          (for the agent, which takes the shell's place)
 *
 * The launcher sends only what was asked for, one thing at a time: a tool that reads further than it was told finds nothing there.
 */

export const StagingWord = {
  wanted: 1,
  next: 2,
  staged: 3,
  /** The agent from the cache is started; the order that came first is its own. */
  cached: 4,
  /** `subject` is a StagingRefusal; the tools' complaints are on stderr. */
  failed: 5,
  unpacker: 6,
} as const;

export const StagingRefusal = {
  machine: 1,
  directory: 2,
  unpack: 3,
  hash: 4,
  start: 5,
  /** There is no place that others may not write to; stderr tells. */
  untrusted: 6,
} as const;

/** The shell copies each piece through a pipe; the launcher holds one for each host that it serves. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** How the unpacker ends; a shell that cannot execute it says 126 or 127. */
export const UnpackerStatus = {
  unpacked: 0,
  /** It has said and taken nothing: the host's own tools may serve. */
  cannotServe: 1,
  failed: 2,
  otherHash: 3,
} as const;

/** What the shell with its tools asks for, and the unpacker. */
export const ArchiveForm = { gzip: 0, zstd: 1 } as const;
