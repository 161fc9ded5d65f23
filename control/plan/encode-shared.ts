/** The tables of a HostPlan that are the same on every host of the communicator. */
import {
  ALGORITHMS,
  COLLECTIVES,
  FORM_RECORD,
  HEADER_BYTES,
  HOST_RECORD,
  PEER_RECORD,
  PRECONDITIONS,
  PROTOCOLS,
  STRIDE,
  TUNING_RECORD,
} from './layout.ts';
import type { CommPlan, Form, TuningRow } from './types.ts';
import { writeU64 } from './u64.ts';

export interface SharedTables {
  readonly bytes: Uint8Array;
  /** From the start of the HostPlan. */
  readonly offsets: {
    readonly host: number;
    readonly peer: number;
    readonly ring: number;
    readonly tuning: number;
    readonly form: number;
    readonly string: number;
  };
  readonly forms: number;
  readonly stringBytes: number;
  /** By rank: its place among the ranks of its host. */
  readonly localIndex: Uint32Array;
}

export function encodeSharedTables(plan: CommPlan): SharedTables {
  const forms = plan.tuning.reduce((sum, row) => sum + row.forms.length, 0);
  const strings = packStrings(plan);
  const host = HEADER_BYTES;
  const peer = host + plan.hosts.length * STRIDE.host;
  const ring = peer + plan.peers.length * STRIDE.peer;
  const tuning = Math.ceil((ring + plan.channels.length * plan.peers.length * STRIDE.ring) / 8) * 8;
  const form = tuning + plan.tuning.length * STRIDE.tuning;
  const string = form + forms * STRIDE.form;
  const end = Math.ceil((string + strings.bytes.length) / 8) * 8;

  const bytes = new Uint8Array(end - HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  writeHosts(view, host - HEADER_BYTES, strings.hosts);
  const localIndex = writePeers(view, peer - HEADER_BYTES, plan);
  writeRings(bytes, ring - HEADER_BYTES, plan);
  writeTuning(view, tuning - HEADER_BYTES, form - HEADER_BYTES, plan.tuning);
  bytes.set(strings.bytes, string - HEADER_BYTES);
  const offsets = { host, peer, ring, tuning, form, string };
  return { bytes, offsets, forms, stringBytes: strings.bytes.length, localIndex };
}

interface PackedStrings {
  readonly bytes: Uint8Array;
  /** Per host: offset and length of its name, offset and length of its address. */
  readonly hosts: readonly (readonly [number, number, number, number])[];
}

function packStrings(plan: CommPlan): PackedStrings {
  const parts: Buffer[] = [];
  let length = 0;
  const add = (text: string): [number, number] => {
    const part = Buffer.from(text, 'utf8');
    parts.push(part);
    length += part.length;
    return [length - part.length, part.length];
  };
  const hosts = plan.hosts.map((host) => [...add(host.name), ...add(host.address)] as const);
  return { bytes: Buffer.concat(parts, length), hosts };
}

function writeHosts(view: DataView, start: number, hosts: PackedStrings['hosts']): void {
  hosts.forEach(([nameOffset, nameBytes, addressOffset, addressBytes], index) => {
    const at = start + index * STRIDE.host;
    view.setUint32(at + HOST_RECORD.nameOffset, nameOffset, true);
    view.setUint32(at + HOST_RECORD.nameBytes, nameBytes, true);
    view.setUint32(at + HOST_RECORD.addressOffset, addressOffset, true);
    view.setUint32(at + HOST_RECORD.addressBytes, addressBytes, true);
  });
}

function writePeers(view: DataView, start: number, plan: CommPlan): Uint32Array {
  const localIndex = new Uint32Array(plan.peers.length);
  const seen = new Uint32Array(plan.hosts.length);
  plan.peers.forEach((peer, rank) => {
    const index = seen[peer.host] ?? 0;
    seen[peer.host] = index + 1;
    localIndex[rank] = index;
    const at = start + rank * STRIDE.peer;
    view.setUint32(at + PEER_RECORD.host, peer.host, true);
    view.setUint32(at + PEER_RECORD.localIndex, index, true);
    view.setUint32(at + PEER_RECORD.listenPort, peer.listenPort, true);
  });
  return localIndex;
}

function writeRings(bytes: Uint8Array, start: number, plan: CommPlan): void {
  plan.channels.forEach(({ ring }, channel) => {
    // Every machine we build for is little-endian (native/core/frame.cc checks it), so the ring is copied as it lies.
    const entries = Uint32Array.from(ring);
    bytes.set(new Uint8Array(entries.buffer), start + channel * plan.peers.length * STRIDE.ring);
  });
}

function writeTuning(view: DataView, rowsAt: number, formsAt: number, rows: readonly TuningRow[]): void {
  let form = 0;
  // The engine finds the rows of a collective by its number.
  const sorted = rows.toSorted((one, other) => numberOf(one) - numberOf(other));
  sorted.forEach((row, index) => {
    const at = rowsAt + index * STRIDE.tuning;
    view.setUint8(at + TUNING_RECORD.collective, COLLECTIVES.indexOf(row.collective));
    view.setUint32(at + TUNING_RECORD.firstForm, form, true);
    view.setUint32(at + TUNING_RECORD.formCount, row.forms.length, true);
    if (row.upToBytes === null) view.setBigUint64(at + TUNING_RECORD.upToBytes, 0xffff_ffff_ffff_ffffn, true);
    else writeU64(view, at + TUNING_RECORD.upToBytes, row.upToBytes);
    for (const entry of row.forms) writeForm(view, formsAt + form++ * STRIDE.form, entry);
  });
}

function numberOf(row: TuningRow): number {
  return COLLECTIVES.indexOf(row.collective);
}

function writeForm(view: DataView, at: number, form: Form): void {
  view.setUint8(at + FORM_RECORD.algorithm, ALGORITHMS.indexOf(form.algorithm));
  view.setUint8(at + FORM_RECORD.protocol, PROTOCOLS.indexOf(form.protocol));
  view.setUint16(at + FORM_RECORD.channels, form.channels, true);
  view.setUint32(at + FORM_RECORD.threads, form.threads, true);
  writeU64(view, at + FORM_RECORD.chunkBytes, form.chunkBytes);
  const bits = form.requires.reduce((mask, name) => mask | (1 << PRECONDITIONS.indexOf(name)), 0);
  view.setUint32(at + FORM_RECORD.requires, bits, true);
  view.setFloat32(at + FORM_RECORD.predictedMicroseconds, form.predictedMicroseconds, true);
  const perMebibyte = at + FORM_RECORD.predictedMicrosecondsPerMebibyte;
  view.setFloat32(perMebibyte, form.predictedMicrosecondsPerMebibyte, true);
}
