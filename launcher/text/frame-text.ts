import { basename } from 'node:path';
import type { StackFrame } from '../../control/messages/stack.ts';

/** `train  train.py:214`, `ncclAllReduce  libnccl.so.2`. */
export function frameText(frame: StackFrame): string {
  const where = placeText(frame);
  return where === '' ? nameText(frame) : `${nameText(frame)}  ${where}`;
}

/** `next loader.py:88`, and of native code its function alone, which says more than its library. */
export function shortFrameText(frame: StackFrame): string {
  if (frame.file === null) return frame.function ?? nameText(frame);
  return `${nameText(frame)} ${placeText(frame)}`;
}

function nameText({ function: name }: StackFrame): string {
  return name ?? '(no name)';
}

function placeText({ file, line, module }: StackFrame): string {
  if (file === null) return module === null ? '' : basename(module);
  return line === null ? basename(file) : `${basename(file)}:${line}`;
}
