import { describe, expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { decodeSystemText, encodeSystemText, isEscaped, systemPath } from '../../control/system-text.ts';

/** Latin-1, cut sequences, overlong and surrogate encodings, and what is valid beside them. */
const samples = [
  [0xe9],
  [0x61, 0xff, 0x62],
  [0xc3, 0xa9, 0xe9],
  [0xe2, 0x82],
  [0xc0, 0x80],
  [0xed, 0xb2, 0x80],
  [0xf0, 0x9f, 0x98, 0x80, 0xf0, 0x9f],
  [0xef, 0xbf, 0xbd, 0xff],
].map((bytes) => Buffer.from(bytes));

describe('strings of the system', () => {
  it.each(samples)('bytes that are no UTF-8 survive decoding, JSON and encoding (%#)', (bytes) => {
    const text = decodeSystemText(bytes);
    expect(isEscaped(text)).toBe(true);
    expect(encodeSystemText(String(JSON.parse(JSON.stringify(text))))).toEqual(bytes);
  });

  it('text that is UTF-8 is decoded as everywhere, with U+FFFD, too', () => {
    for (const text of ['', 'plain', 'é€😀', 'a\uFFFDb']) {
      expect(decodeSystemText(Buffer.from(text))).toBe(text);
      expect(encodeSystemText(text)).toEqual(Buffer.from(text));
    }
  });

  it('a message has the bytes, and a path is given to Node as bytes', () => {
    const bytes = Buffer.from([0x2f, 0xff]);
    const text = decodeSystemText(bytes);
    const message = new ByteWriter().systemText(text).systemText('é').finish();
    const reader = new ByteReader(message, 'test');
    expect(Buffer.from(reader.block())).toEqual(bytes);
    expect(reader.string()).toBe('é');
    expect(systemPath(text)).toEqual(bytes);
    expect(systemPath('/é')).toBe('/é');
  });
});
