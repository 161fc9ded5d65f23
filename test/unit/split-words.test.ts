import { expect, test } from 'vitest';
import { splitWords } from '../../launcher/remote/shell/split-words.ts';

test.each<[string, string[] | null]>([
  ['', []],
  ['  ssh   -v ', ['ssh', '-v']],
  ['ssh -o "ProxyCommand nc %h %p"', ['ssh', '-o', 'ProxyCommand nc %h %p']],
  ["ssh -o 'User = me' -F/a\\ b", ['ssh', '-o', 'User = me', '-F/a b']],
  ['a"b c"d \'\' "$x\\$\\"\\q"', ['ab cd', '', '$x$"\\q']],
  ['a\nb', ['a', 'b']],
  ['ssh "open', null],
  ["ssh 'open", null],
  ['ssh \\', null],
])('%j is split into %j', (line, words) => {
  expect(splitWords(line)).toEqual(words);
});
