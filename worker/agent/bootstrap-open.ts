/** The bootstrap socket as the agent opens it, with the native part loaded only here: a job that uses no engine does without. */
import { loadNative } from '../engine/load.ts';
import { Bootstrap } from './bootstrap.ts';
import type { OpenBootstrap } from './bootstrap-service.ts';

export const openBootstrap: OpenBootstrap = ({ order, placement, socketPath, sendUp }) => {
  const native = loadNative();
  // Should the guardian be killed, its orphans come to us and can be found.
  native.setChildSubreaper();
  return new Bootstrap({
    native,
    socketPath,
    hostIndex: placement.hostIndex,
    hostName: order.hostName,
    hostCount: placement.hostCount,
    rankCount: placement.rankCount,
    localRankCount: placement.ranks.length,
    jobId: order.jobId,
    epoch: order.epoch,
    plansLocally: order.plansLocally,
    sendUp,
  });
};
