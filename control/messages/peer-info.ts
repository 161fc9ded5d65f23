/** PeerInfo: a rank's description of itself when it joins a communicator (bootstrap.ts has the layout). */
import { PEER_INFO_BYTES } from './bootstrap.ts';
import { ByteReader, ByteWriter } from './bytes.ts';

const PEER_INFO_VERSION = 1;

export interface PeerInfo {
  readonly device: 'host' | 'cuda';
  /** CUDA device index; 0 on the host device. */
  readonly cudaDevice: number;
  /** TCP port of the engine's listener, 0 if it has none. */
  readonly listenPort: number;
  /** Text, because hashes and device numbers are only compared. */
  readonly hostHash: string;
  readonly pidHash: string;
  readonly shmDevice: string;
  /** PCI bus id of the GPU as a number in hexadecimal; '0' without one. */
  readonly busId: string;
  readonly gpuDirect: boolean;
  /** Number of SMs of the GPU; 0 on the host device. */
  readonly smCount: number;
  /** Maximum of channels per launch that the program sets; 0 if the plan decides. */
  readonly maxChannels: number;
  /** Number of communicators that the process already has on the GPU. */
  readonly communicators: number;
}

export function decodePeerInfo(bytes: Uint8Array, what: string): PeerInfo {
  const reader = new ByteReader(bytes, what);
  if (bytes.length < PEER_INFO_BYTES) throw reader.malformed(`a PeerInfo has ${PEER_INFO_BYTES} bytes`);
  const version = reader.u32('version');
  if (version !== PEER_INFO_VERSION) throw reader.malformed(`version ${version}, expected ${PEER_INFO_VERSION}`);
  const device = reader.u32('device');
  if (device > 1) throw reader.malformed(`device ${device} is neither host (0) nor cuda (1)`);
  const [cudaDevice, listenPort] = [reader.u32('cuda device'), reader.u32('port')];
  if (listenPort > 0xffff) throw reader.malformed(`${listenPort} is no TCP port`);
  const [hostHash, pidHash, shmDevice, busId] = [hex(reader), hex(reader), hex(reader), hex(reader)];
  const gpuDirect = (reader.u32('flags') & 1) !== 0;
  const smCount = reader.u32('multiprocessors');
  const maxChannels = reader.u32('most channels');
  const communicators = reader.u32('communicators');
  return {
    device: device === 0 ? 'host' : 'cuda',
    cudaDevice,
    listenPort,
    hostHash,
    pidHash,
    shmDevice,
    busId,
    gpuDirect,
    smCount,
    maxChannels,
    communicators,
  };
}

export function encodePeerInfo(info: PeerInfo): Uint8Array {
  const writer = new ByteWriter(PEER_INFO_BYTES);
  writer.u32(PEER_INFO_VERSION).u32(info.device === 'host' ? 0 : 1);
  writer.u32(info.cudaDevice).u32(info.listenPort);
  for (const text of [info.hostHash, info.pidHash, info.shmDevice, info.busId]) {
    const value = BigInt(`0x${text}`);
    writer.u32(Number(value & 0xffff_ffffn)).u32(Number(value >> 32n));
  }
  return writer
    .u32(info.gpuDirect ? 1 : 0)
    .u32(info.smCount)
    .u32(info.maxChannels)
    .u32(info.communicators)
    .finish();
}

function hex(reader: ByteReader): string {
  const low = reader.u32('hash');
  const high = reader.u32('hash');
  return high === 0 ? low.toString(16) : high.toString(16) + low.toString(16).padStart(8, '0');
}
