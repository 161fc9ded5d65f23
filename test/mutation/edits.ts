/** What can be changed at one node of the syntax tree so that a good test should notice. */
import {
  isArrayBindingPattern,
  isBinaryExpression,
  isBindingElement,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isElementAccessExpression,
  isIfStatement,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isReturnStatement,
  isWhileStatement,
  type Expression,
  type Node,
  SyntaxKind,
} from 'typescript/unstable/ast';

/** Replaces the text from `start` to `end`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** An operator's replacements: for a comparison first the border, then the opposite. */
const operators = new Map<SyntaxKind, readonly string[]>([
  [SyntaxKind.LessThanToken, ['<=', '>=']],
  [SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [SyntaxKind.AmpersandAmpersandToken, ['||']],
  [SyntaxKind.BarBarToken, ['&&']],
]);

/** Larger numbers are times and sizes, whose border by one is no behaviour. */
const LARGEST_NUMBER = 99;

export function editsAt(node: Node): Edit[] {
  const replaced = (replacement: string): Edit => ({ start: node.getStart(), end: node.getEnd(), replacement });
  if (isBinaryExpression(node)) {
    const { operatorToken: token } = node;
    const others = operators.get(token.kind) ?? [];
    return others.map((replacement) => ({ start: token.getStart(), end: token.getEnd(), replacement }));
  }
  if (isPrefixUnaryExpression(node)) {
    return node.operator === SyntaxKind.ExclamationToken ? [replaced(node.operand.getText())] : [];
  }
  if (node.kind === SyntaxKind.TrueKeyword) return isFallback(node) ? [] : [replaced('false')];
  if (node.kind === SyntaxKind.FalseKeyword) return isFallback(node) ? [] : [replaced('true')];
  if (isNumericLiteral(node)) {
    const value = Number(node.getText().replaceAll('_', ''));
    const counts = Number.isSafeInteger(value) && value <= LARGEST_NUMBER && !isFallback(node) && !isName(node);
    return counts ? [replaced(String(value + 1))] : [];
  }
  if (isPropertyAccessExpression(node)) {
    return node.name.getText() === 'length' && isCounted(node) ? [replaced(`(${node.getText()} - 1)`)] : [];
  }
  if (isReturnStatement(node)) return isEarly(node) ? [replaced(';')] : [];
  const condition = conditionOf(node);
  if (condition === null || hasOperator(condition)) return [];
  const [start, end] = [condition.getStart(), condition.getEnd()];
  return [{ start, end, replacement: `!(${condition.getText()})` }];
}

function conditionOf(node: Node): Expression | null {
  if (isIfStatement(node) || isWhileStatement(node)) return node.expression;
  return isConditionalExpression(node) ? node.condition : null;
}

/** True if the condition has an edit of its own that turns it around. */
function hasOperator(condition: Expression): boolean {
  if (isBinaryExpression(condition)) return operators.has(condition.operatorToken.kind);
  if (isPrefixUnaryExpression(condition)) return condition.operator === SyntaxKind.ExclamationToken;
  return condition.kind === SyntaxKind.TrueKeyword || condition.kind === SyntaxKind.FalseKeyword;
}

/** True for `0` in `list[index] ?? 0`, `list[index]?.count ?? 0` and `const [first = 0] = list`, which only the compiler asks for; `-1` likewise. */
function isFallback(node: Node): boolean {
  const { parent } = node;
  if (isPrefixUnaryExpression(parent)) return parent.operator === SyntaxKind.MinusToken && isFallback(parent);
  if (isBindingElement(parent)) return parent.initializer === node && isArrayBindingPattern(parent.parent);
  if (!isBinaryExpression(parent) || parent.operatorToken.kind !== SyntaxKind.QuestionQuestionToken) return false;
  return parent.right === node && mayLack(parent.left);
}

/** True if the compiler takes the value for undefined, too: `list[index]`, `list[index]?.name`, `table.get(key)`. */
function mayLack(value: Node): boolean {
  if (isPropertyAccessExpression(value)) return isElementAccessExpression(value.expression);
  return isElementAccessExpression(value) || isCallExpression(value);
}

/** True for `1` in `{ 1: 'one' }`. */
function isName(node: Node): boolean {
  return 'name' in node.parent && node.parent.name === node;
}

/** True if a length is a value here: assigned lengths and compared ones, whose operator has its own edits, are not. */
function isCounted(node: Node): boolean {
  const { parent } = node;
  if (!isBinaryExpression(parent)) return true;
  const assigned = parent.operatorToken.kind === SyntaxKind.EqualsToken && parent.left === node;
  return !assigned && !operators.has(parent.operatorToken.kind);
}

/** True for a return that an `if` guards. */
function isEarly(node: Node): boolean {
  const { parent } = node;
  return isIfStatement(parent) || (isBlock(parent) && isIfStatement(parent.parent));
}
