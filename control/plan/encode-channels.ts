/** The tables of rings and trees, as bytes. */
import type { ChannelTables } from './channel-tables.ts';
import { CHANNEL_RECORD, HOST_RING_RECORD, HOST_TREE_RECORD, SHAPE_RECORD, STRIDE } from './layout.ts';

type Table = 'member' | 'channel' | 'shape' | 'ring' | 'tree' | 'hostRing' | 'hostTree';

/** `start`: of a table in `bytes`. */
export function writeChannels(bytes: Uint8Array, start: (table: Table) => number, tables: ChannelTables): void {
  const view = new DataView(bytes.buffer);
  // Every machine we build for is little-endian (native/base/frame.h checks it), so lists are copied as they lie.
  const copy = (at: number, list: Uint32Array): void => bytes.set(new Uint8Array(list.buffer), at);
  const record = (at: number, fields: readonly (readonly [number, number])[]): void => {
    for (const [offset, value] of fields) view.setUint32(at + offset, value, true);
  };
  copy(start('member'), tables.members);
  tables.channels.forEach(({ ring, hostRing, tree, hostTree, rail }, index) =>
    record(start('channel') + index * STRIDE.channel, [
      [CHANNEL_RECORD.ring, ring],
      [CHANNEL_RECORD.hostRing, hostRing],
      [CHANNEL_RECORD.tree, tree],
      [CHANNEL_RECORD.hostTree, hostTree],
      [CHANNEL_RECORD.rail, rail],
    ]),
  );
  let firstRing = 0;
  let firstTree = 0;
  tables.shapes.forEach(({ ranks, rings, trees }, index) => {
    record(start('shape') + index * STRIDE.shape, [
      [SHAPE_RECORD.ranks, ranks],
      [SHAPE_RECORD.firstRing, firstRing],
      [SHAPE_RECORD.firstTree, firstTree],
    ]);
    copy(start('ring') + firstRing * STRIDE.ring, rings);
    copy(start('tree') + firstTree * STRIDE.tree, trees);
    firstRing += rings.length;
    firstTree += trees.length;
  });
  writeHosts(record, start, tables);
}

type WriteRecord = (at: number, fields: readonly (readonly [number, number])[]) => void;

function writeHosts(record: WriteRecord, start: (table: Table) => number, tables: ChannelTables): void {
  const { hostRings, hostTrees, shapes, shapeOf } = tables;
  const hosts = shapeOf.length;
  hostRings.forEach((order, ring) => {
    const at = start('hostRing') + ring * hosts * STRIDE.hostRing;
    let position = 0;
    order.forEach((host, stop) => {
      record(at + stop * STRIDE.hostRing, [[HOST_RING_RECORD.host, host]]);
      record(at + host * STRIDE.hostRing, [[HOST_RING_RECORD.firstPosition, position]]);
      position += shapes[shapeOf[host] ?? 0]?.ranks ?? 0;
    });
  });
  hostTrees.forEach(({ parents, attachments }, tree) => {
    const at = start('hostTree') + tree * hosts * STRIDE.hostTree;
    parents.forEach((parent, host) =>
      record(at + host * STRIDE.hostTree, [
        [HOST_TREE_RECORD.parent, parent],
        [HOST_TREE_RECORD.attachment, attachments[host] ?? 0],
      ]),
    );
  });
}
