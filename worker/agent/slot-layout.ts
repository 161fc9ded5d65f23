/** Offsets in one slot of a telemetry page (native/include/ncclrun.h, ncclrunTelemetrySlot). */
export const SLOT = {
  rank: 8,
  size: 12,
  state: 68,
  epoch: 76,
  lostPeer: 80,
  hashed: 88,
  recentHashes: 96,
  left: 168,
  hashedBytes: 176,
  hashedCollective: 184,
  hashedCall: 188,
} as const;
/** Number of `recentHashes`. */
export const HASHES = 36;
