/** The bootstrap socket as the agent opens it. */
import { Bootstrap } from './bootstrap.ts';
import type { OpenBootstrap } from './bootstrap-service.ts';

export const openBootstrap: OpenBootstrap = ({
  native,
  order,
  placement,
  socketPath,
  sendUp,
  machine,
  tables,
  onDiffer,
  onLeft,
}) => {
  return new Bootstrap({
    native,
    socket: socketPath,
    hostIndex: placement.hostIndex,
    hostName: order.hostName,
    hostCount: placement.hostCount,
    rankCount: placement.rankCount,
    localRankCount: placement.ranks.length,
    jobId: order.jobId,
    epoch: order.epoch,
    plansLocally: order.plansLocally,
    environment: { ...process.env, ...placement.programs[0]?.environment },
    machine,
    tables,
    sendUp,
    onDiffer,
    onLeft,
  });
};
