/** A command: a text is for `sh -c`, a list is the program and its arguments. */
import type { Item } from './item.ts';
import { itemOf, scalarsOf, type Mapping } from './item.ts';
import type { Source } from './source.ts';

/** Throws a FailureError (usage) for a command that is missing, said twice or no command. */
export function readCommand(job: Mapping, source: Source): string[] {
  const command = itemOf(job, 'command');
  const commands = itemOf(job, 'commands');
  if (command !== null && commands !== null) {
    throw source.mistake(commands, 'the job has a command and commands', 'leave one of them out');
  }
  if (commands !== null) {
    const texts = scalarsOf(commands).map((scalar) => checked(scalar, source).text);
    return ['sh', '-c', texts.join(' && ')];
  }
  if (command !== null) return commandOf(command, source);
  throw source.mistake(itemOf(job, 'name') ?? job, 'the job has no command', 'write command: python3 train.py');
}

export function commandOf(item: Item, source: Source): string[] {
  if (item.type !== 'list') return ['sh', '-c', ...scalarsOf(item).map((scalar) => checked(scalar, source).text)];
  const words = scalarsOf(item);
  const [program] = words;
  if (program !== undefined && program.text.trim() === '') {
    throw source.mistake(program, 'the name of the program is empty', 'write the program first: [python3, train.py]');
  }
  for (const word of words) if (word.text.includes('\0')) throw nullCharacter(word, source);
  return words.map(({ text }) => text);
}

function checked<Word extends Item & { readonly text: string }>(word: Word, source: Source): Word {
  if (word.text.includes('\0')) throw nullCharacter(word, source);
  if (word.text.trim() !== '') return word;
  throw source.mistake(word, 'the command is empty', 'write command: python3 train.py');
}

function nullCharacter(word: Item, source: Source): Error {
  return source.mistake(word, 'the command holds a null character', 'no argument can hold one: remove it');
}
