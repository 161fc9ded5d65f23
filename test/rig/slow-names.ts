/**
 * A name server that takes its time, for the login node of a test cluster. It knows hosts of the cluster by any name that ends in their number:
 * slow-12 is h12.
 *
 *     node test/rig/slow-names.ts ADDRESS MILLISECONDS
 */
import { createSocket } from 'node:dgram';

const [address = '', milliseconds = ''] = process.argv.slice(2);
const HEADER_BYTES = 12;
const ADDRESS_TYPE = 1;
const FIRST_HOST = 10;

/** RFC 1035: the question again, and an address if one was asked for. */
function answerTo(question: Buffer): Buffer {
  let end = HEADER_BYTES;
  let name = '';
  while ((question[end] ?? 0) !== 0) {
    const length = question[end] ?? 0;
    name = question.toString('latin1', end + 1, end + 1 + length);
    end += length + 1;
  }
  const type = question.readUInt16BE(end + 1);
  const header = Buffer.from(question.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(type === ADDRESS_TYPE ? 1 : 0, 6);
  header.writeUInt32BE(0, 8);
  const host = FIRST_HOST + Number(/\d+$/.exec(name)?.[0] ?? 0);
  const record = [0xc0, HEADER_BYTES, 0, ADDRESS_TYPE, 0, 1, 0, 0, 0, 0, 0, 4, 10, 77, 0, host];
  const asked = question.subarray(HEADER_BYTES, end + 5);
  return Buffer.concat([header, asked, Buffer.from(type === ADDRESS_TYPE ? record : [])]);
}

const server = createSocket('udp4');
server.on('message', (question, { port, address: from }) => {
  setTimeout(() => server.send(answerTo(question), port, from), Number(milliseconds));
});
server.bind(53, address, () => process.stdout.write('ready\n'));
