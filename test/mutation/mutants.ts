/** All mutants of a source file; in code that draws, coordinates are no behaviour and stay as they are. */
import {
  type Node,
  type SourceFile,
  isArrowFunction,
  isClassDeclaration,
  isConstructorDeclaration,
  isExportDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isImportDeclaration,
  isInterfaceDeclaration,
  isMethodDeclaration,
  isNumericLiteral,
  isPropertyAssignment,
  isPropertyDeclaration,
  isSetAccessorDeclaration,
  isTypeAliasDeclaration,
  isTypeNode,
  isVariableDeclaration,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { type Edit, editsAt } from './edits.ts';

/** One change of one file. */
export interface Mutant extends Edit {
  /** Path in the repository. */
  readonly file: string;
  /** Counts from 1. */
  readonly line: number;
  /** The text that the edit replaces. */
  readonly original: string;
  /** The line of the source, without its indentation. */
  readonly source: string;
  /** The innermost named function around it, as V8 names it; null in the module's own code. */
  readonly inFunction: string | null;
}

export function mutantsOf(tree: SourceFile, file: string): Mutant[] {
  const found: Mutant[] = [];
  const { text } = tree;
  const isPicture = /\/svg(\/|\.ts$)/u.test(file);
  const visit = (node: Node, inFunction: string | null): void => {
    if (isTypeNode(node) || isTypeAliasDeclaration(node) || isInterfaceDeclaration(node)) return;
    if (isImportDeclaration(node) || isExportDeclaration(node)) return;
    const name = functionName(node) ?? inFunction;
    const edits = isPicture && isNumericLiteral(node) ? [] : editsAt(node);
    for (const edit of edits) found.push({ file, inFunction: name, ...edit, ...placeOf(text, edit) });
    node.forEachChild((child) => visit(child, name));
  };
  visit(tree, null);
  return found;
}

/** The file's text with the change. */
export function mutated(text: string, { start, end, replacement }: Edit): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** One line: where, and what becomes of what. */
export function describeMutant({ file, line, original, replacement, source }: Mutant): string {
  return `${file}:${line}: ${oneLine(original)} -> ${oneLine(replacement)}    in: ${source}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ');
}

function placeOf(text: string, { start, end }: Edit): Pick<Mutant, 'line' | 'original' | 'source'> {
  const line = text.slice(0, start).split('\n').length;
  const lineEnd = text.indexOf('\n', start);
  const source = text.slice(text.lastIndexOf('\n', start - 1) + 1, lineEnd === -1 ? undefined : lineEnd).trim();
  return { line, original: text.slice(start, end), source };
}

/** V8's name of the function that this node is, or null. */
function functionName(node: Node): string | null {
  if (isFunctionDeclaration(node)) return node.name?.getText() ?? null;
  if (isMethodDeclaration(node)) return node.name.getText();
  if (isGetAccessorDeclaration(node)) return `get ${node.name.getText()}`;
  if (isSetAccessorDeclaration(node)) return `set ${node.name.getText()}`;
  if (isConstructorDeclaration(node)) {
    return isClassDeclaration(node.parent) ? (node.parent.name?.getText() ?? null) : null;
  }
  if (isPropertyDeclaration(node)) {
    const isStatic = node.modifiers?.some(({ kind }) => kind === SyntaxKind.StaticKeyword) === true;
    return isStatic ? '<static_initializer>' : '<instance_members_initializer>';
  }
  if (!isArrowFunction(node) && !isFunctionExpression(node)) return null;
  const { parent } = node;
  const named = isVariableDeclaration(parent) || isPropertyAssignment(parent) || isPropertyDeclaration(parent);
  return named ? parent.name.getText() : null;
}
