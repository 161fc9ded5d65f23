/** Material for tests of the rendezvous: keys, contributions, and a hub whose frames are written down. */
import { encodePeerInfo } from '../../control/messages/peer-info.ts';
import type { PeerInfo } from '../../control/messages/peer-info.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import type { Key } from '../../control/messages/key.ts';
import { encodeLeft, encodeMerged } from '../../control/messages/rendezvous-codec.ts';
import type { Entry } from '../../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND, LeftHow } from '../../control/messages/rendezvous.ts';
import { makeUniqueId } from '../../control/rendezvous/unique-id.ts';
import { RendezvousHub } from '../../launcher/job/rendezvous.ts';
import type { RendezvousHubOptions } from '../../launcher/job/rendezvous.ts';
import type { JobEvent } from '../../launcher/model/event.ts';

export function newKey(round = JOIN_ROUND, epoch = 0): Key {
  return { id: makeUniqueId('test').toString('latin1'), epoch, round };
}

export function peerInfo(changes: Partial<PeerInfo> = {}): Uint8Array {
  return encodePeerInfo({
    device: 'host',
    cudaDevice: 0,
    listenPort: 4000,
    hostHash: '1',
    pidHash: '2',
    shmDevice: '3',
    busId: '0',
    smCount: 0,
    maxChannels: 0,
    communicators: 0,
    gpuDirect: false,
    ...changes,
  });
}

export function entry(rank: number, bytes: Uint8Array = peerInfo()): Entry {
  return { rank, jobRank: rank, pid: 1000 + rank, bytes };
}

export function merged(key: Key, size: number, entries: readonly Entry[]): Frame {
  return makeFrame(FrameKind.merged, { payload: encodeMerged({ key, size, entries }) });
}

export function left(key: Key, rank: number, how: LeftHow, reason = '', flags = 0): Frame {
  return makeFrame(FrameKind.left, { flags, payload: encodeLeft({ key, rank, how, reason }) });
}

export interface Sent {
  readonly host: number;
  readonly frame: Frame;
}

/** A hub of a job with two ranks on each host; `sent`, `events` and `missing` hold what it did. */
export function testHub(hosts: number, changes: Partial<RendezvousHubOptions> = {}) {
  const sent: Sent[] = [];
  const events: JobEvent[] = [];
  const missing: { rank: number; message: string }[] = [];
  const hub = new RendezvousHub({
    jobId: 'test',
    epoch: 0,
    hosts: Array.from({ length: hosts }, (_, index) => ({
      name: `node${index}`,
      address: `10.0.0.${index}`,
      cores: 4,
    })),
    rankHosts: Array.from({ length: 2 * hosts }, (_, rank) => Math.floor(rank / 2)),
    plan: null,
    send: (host, frame) => void sent.push({ host, frame }),
    onEvent: (event) => void events.push(event),
    onMissing: (rank, message) => void missing.push({ rank, message }),
    ...changes,
  });
  return { hub, sent, events, missing };
}
