/** What an algorithm makes ranks of several hosts send: hops one behind the other, and bytes as parts of an operation's. */
import type { AlgorithmName, CollectiveName } from '../../plan/types.ts';

export interface RanksOnHosts {
  readonly ranks: number;
  readonly hosts: number;
}

export interface Traffic {
  /** Transfers between hosts and inside a host, one behind the other, until the last rank has its result. */
  readonly hopsBetween: number;
  readonly hopsInside: number;
  /** Peers on other hosts and on its own that the busiest rank serves at once, beyond the first. */
  readonly furtherPeers: number;
  readonly furtherPeersInside: number;
  /** How often data crosses the network before it is a result: reduced and spread again are two passes. */
  readonly passes: number;
  /** What the busiest rank moves between hosts in its busier direction, and inside its host. */
  readonly between: number;
  readonly inside: number;
  readonly reduces: boolean;
  /** What all ranks of a host send, or receive, between hosts. */
  readonly ofHost: number;
}

/** An operation's bytes are those of the larger of a rank's two buffers. Returns null if the algorithm does not implement the collective, or for a barrier. */
export function trafficBetween(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  extent: RanksOnHosts,
): Traffic | null {
  switch (algorithm) {
    case 'ring':
      return ringTraffic(collective, extent);
    case 'tree':
      return treeTraffic(collective, extent);
    case 'rail':
      return railTraffic(collective, extent);
    case 'collnet':
      return collective === 'allReduce' ? collnetTraffic(extent) : null;
    case 'collnetChain':
      return collective === 'allReduce' ? collnetChainTraffic(extent) : null;
    case 'directOneShot':
      return oneShotTraffic(collective, extent);
    case 'directTwoShot':
      return collective === 'allReduce' ? twoShotTraffic(collective, extent) : null;
    default:
      return null;
  }
}

/** Of the host that has most. */
function localOf({ ranks, hosts }: RanksOnHosts): number {
  return Math.ceil(ranks / hosts);
}

function reduces(collective: CollectiveName): boolean {
  return collective === 'allReduce' || collective === 'reduceScatter' || collective === 'reduce';
}

/** A ring enters and leaves each host once. The rank at an end of a host has the network on one side, a lone rank on both. */
function ringTraffic(collective: CollectiveName, extent: RanksOnHosts): Traffic | null {
  const { ranks, hosts } = extent;
  const isWhole = collective === 'broadcast' || collective === 'reduce';
  if (!isWhole && collective !== 'allReduce' && collective !== 'allGather' && collective !== 'reduceScatter')
    return null;
  const passes = collective === 'allReduce' ? 2 : 1;
  const hops = passes * (ranks - 1);
  const copies = isWhole ? 1 : hops / ranks;
  return {
    hopsBetween: (hops * hosts) / ranks,
    hopsInside: (hops * (ranks - hosts)) / ranks,
    furtherPeers: 0,
    furtherPeersInside: 0,
    passes,
    between: copies,
    inside: localOf(extent) > 1 ? copies : 0,
    reduces: reduces(collective),
    ofHost: copies,
  };
}

/** The engine takes the tree of one channel for all: the other tree of a double binary tree stands idle. */
function treeTraffic(collective: CollectiveName, extent: RanksOnHosts): Traffic | null {
  if (collective !== 'allReduce' && collective !== 'broadcast' && collective !== 'reduce') return null;
  const local = localOf(extent);
  const passes = collective === 'allReduce' ? 2 : 1;
  const children = Math.min(2, extent.hosts - 1);
  // All that a host inside a tree sends: up to its parent, and down to its children.
  const isOnlyRoot = extent.hosts === 2;
  const between = passes === 2 && !isOnlyRoot ? children + 1 : children;
  return {
    hopsBetween: passes * Math.ceil(Math.log2(extent.hosts)),
    hopsInside: passes * Math.ceil(Math.log2(local)),
    furtherPeers: children - 1,
    furtherPeersInside: Math.min(2, local - 1),
    passes,
    between,
    inside: local === 1 ? 0 : passes * Math.min(2, local - 1),
    reduces: reduces(collective),
    ofHost: between,
  };
}

/** Each rank exchanges its part with its rail, after and before the ranks of a host have exchanged theirs. */
function railTraffic(collective: CollectiveName, extent: RanksOnHosts): Traffic | null {
  if (collective !== 'allReduce' && collective !== 'allGather' && collective !== 'reduceScatter') return null;
  const { ranks, hosts } = extent;
  const local = localOf(extent);
  const passes = collective === 'allReduce' ? 2 : 1;
  const between = (passes * (hosts - 1)) / ranks;
  return {
    hopsBetween: passes,
    hopsInside: passes,
    furtherPeers: hosts - 2,
    furtherPeersInside: Math.max(0, local - 2),
    passes,
    between,
    inside: (passes * (local - 1)) / local,
    reduces: reduces(collective),
    ofHost: between * local,
  };
}

/** As a rail's, but each rank sends its part to the network once, and receives the result once. */
function collnetTraffic(extent: RanksOnHosts): Traffic {
  const local = localOf(extent);
  return {
    hopsBetween: 2,
    hopsInside: local > 1 ? 2 : 0,
    furtherPeers: 0,
    furtherPeersInside: Math.max(0, local - 2),
    passes: 2,
    between: 1 / local,
    inside: (2 * (local - 1)) / local,
    reduces: true,
    ofHost: 1,
  };
}

/** The ranks of a host are a chain, at whose end one sends all of the host's data to the network, and passes the result back. */
function collnetChainTraffic(extent: RanksOnHosts): Traffic {
  const local = localOf(extent);
  return {
    hopsBetween: 2,
    hopsInside: 2 * (local - 1),
    furtherPeers: 0,
    furtherPeersInside: 0,
    passes: 2,
    between: 1,
    inside: local > 1 ? 2 : 0,
    reduces: true,
    ofHost: 1,
  };
}

/** Every rank sends to every other what that one needs. */
function oneShotTraffic(collective: CollectiveName, extent: RanksOnHosts): Traffic | null {
  if (collective === 'barrier') return null;
  const { ranks, hosts } = extent;
  const local = localOf(extent);
  // A rank on the host with fewest has most peers on others.
  const away = ranks - Math.floor(ranks / hosts);
  const hasRoot = ['broadcast', 'reduce', 'gather', 'scatter'].includes(collective);
  const isWhole = ['allReduce', 'broadcast', 'reduce'].includes(collective);
  const isMessage = collective === 'sendRecv';
  const part = isWhole || isMessage ? 1 : 1 / ranks;
  const between = isMessage ? 1 : away * part;
  return {
    hopsBetween: 1,
    hopsInside: 0,
    furtherPeers: isMessage ? 0 : away - 1,
    furtherPeersInside: isMessage ? 0 : local - 1,
    passes: 1,
    between,
    inside: isMessage ? 0 : (local - 1) * part,
    reduces: reduces(collective),
    ofHost: hasRoot || isMessage ? between * (isMessage ? local : 1) : local * (ranks - local) * part,
  };
}

/** Every rank reduces its part, and sends it to all. */
function twoShotTraffic(collective: CollectiveName, extent: RanksOnHosts): Traffic {
  const { ranks, hosts } = extent;
  const local = localOf(extent);
  // A rank on the host with fewest has most peers on others.
  const away = ranks - Math.floor(ranks / hosts);
  return {
    hopsBetween: 2,
    hopsInside: 0,
    furtherPeers: away - 1,
    furtherPeersInside: local - 1,
    passes: 2,
    between: (2 * away) / ranks,
    inside: (2 * (local - 1)) / ranks,
    reduces: reduces(collective),
    ofHost: (2 * (ranks - local) * local) / ranks,
  };
}
