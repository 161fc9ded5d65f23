/** What is wrong with YAML, in sentences about the file in place of the parser. */
import type { YAMLError } from 'yaml';
import type { Source } from './source.ts';

interface Advice {
  readonly message: string;
  readonly remedy: string;
}

export function yamlMistake({ code, message, pos: [start, end] }: YAMLError, source: Source): Error {
  const character = JSON.stringify(source.text.slice(start, start + 1));
  const sentence = message.charAt(0).toLowerCase() + message.slice(1);
  const { message: what, remedy } = adviceFor(code, character, message) ?? { message: sentence, remedy: null };
  return source.mistake(
    { start, end },
    what,
    remedy ?? 'a batch file is YAML 1.2; docs/batch.schema.json describes it',
  );
}

function adviceFor(code: YAMLError['code'], character: string, message: string): Advice | null {
  switch (code) {
    case 'TAB_AS_INDENT':
      return { message: 'a tab indents the line', remedy: 'indent with blanks: YAML takes no tabs' };
    case 'BAD_SCALAR_START':
      return { message: `a text begins with ${character}`, remedy: 'put the text in quotes' };
    case 'BAD_DQ_ESCAPE':
      return {
        message: 'double quotes hold a backslash that means nothing',
        remedy: 'put the text in single quotes, which keep backslashes',
      };
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return {
        message: 'a key stands where a value goes on',
        remedy: 'put a text that has ": " in it in quotes, or check the indentation',
      };
    case 'BAD_INDENT':
    case 'BLOCK_IN_FLOW':
      return {
        message: 'the indentation fits no line above',
        remedy: 'indent lines of one list or map alike, and close each [ and {',
      };
    case 'RESOURCE_EXHAUSTION':
      return { message: 'the values are nested too deeply', remedy: 'write at most 32 lists and maps in each other' };
    case 'MULTIPLE_DOCS':
      return { message: 'a second document begins here', remedy: 'write one document: all jobs stand in one list' };
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
      return { message: 'the file has a tag', remedy: 'put a text that begins with ! in quotes' };
    case 'UNEXPECTED_TOKEN':
      return {
        message: `${character} is not expected here`,
        remedy: 'check quotes, brackets and the indentation of the lines above',
      };
    case 'MISSING_CHAR':
      if (message.includes('quote')) return { message: 'the quotes are not closed', remedy: 'write the closing quote' };
      return message.includes('map keys')
        ? {
            message: 'a word stands where a key is expected',
            remedy: 'write a colon and a blank behind a key: "nodes: 2"',
          }
        : null;
    default:
      return null;
  }
}
