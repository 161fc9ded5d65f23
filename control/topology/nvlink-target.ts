/** What is at the other end of NVLinks. */
import * as attribute from './attribute.ts';
import type { Element } from './element.ts';

/** `isGpu` tests for a GPU at an address; it serves if the file lacks the class of the other end. */
export function nvlinkTarget(link: Element, isGpu: (address: number) => boolean): 'gpu' | 'cpu' | 'nvswitch' {
  const target = attribute.textAttribute(link, 'tclass', '').toLowerCase();
  if (target === '') {
    const isAddress = /^[0-9a-f]+(?:[:.][0-9a-f]+)*$/iu.test(attribute.textAttribute(link, 'target'));
    return isAddress && isGpu(attribute.busId(link, 'target')) ? 'gpu' : 'nvswitch';
  }
  if (target.startsWith('0x03')) return 'gpu';
  return target === '0x068001' ? 'cpu' : 'nvswitch';
}
