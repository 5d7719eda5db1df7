import type { ASTNode } from '@marcbachmann/cel-js'

/** Macros that evaluate an expression for each element of a list or key of a map; their first argument names the element. */
export const loops: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])

/** A comprehension: its list, the name of the element and the expression evaluated for each of them. */
export interface Loop {
  readonly name: string
  readonly range: ASTNode
  readonly element: string
  readonly bodies: readonly ASTNode[]
}

/** The comprehension of a node, if it is one. */
export function loopOf(node: ASTNode): Loop | undefined {
  if (node.op !== 'rcall') return undefined
  const [name, range, [first, ...bodies]] = node.args
  return loops.has(name) && first?.op === 'id' ? { name, range, element: first.args, bodies } : undefined
}

/** The operands of a node in source order. */
export function operandsOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case '!_':
    case '-_':
      return [node.args]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'map':
      return node.args.flat()
    default:
      return node.args
  }
}

/** Calls `visit` for `root` and every node below, with the names bound by comprehensions there. */
export function walk(
  root: ASTNode,
  visit: (node: ASTNode, bound: ReadonlySet<string>) => void,
  bound: ReadonlySet<string> = new Set(),
): void {
  visit(root, bound)
  const loop = loopOf(root)
  if (!loop) {
    for (const operand of operandsOf(root)) walk(operand, visit, bound)
    return
  }
  walk(loop.range, visit, bound)
  for (const body of loop.bodies) walk(body, visit, new Set([...bound, loop.element]))
}
