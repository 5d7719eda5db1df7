/** Comments for generated configurations, from the declarations: the purpose of a key, and further options. */
import { type Document, isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml'
import { keyOf } from '../../../document/patch/node.ts'
import { pipeOf, unwrap } from '../../../document/shape.ts'
import { toYaml } from './yaml.ts'

/** Which comments to add. */
export interface Comments {
  docs?: boolean
  examples?: boolean
}

/** Adds comments to a document that follows a declaration. */
export const explain =
  (schema: unknown, comments: Comments) =>
  (document: Document): void =>
    visitNode(document.contents as Node, schema, comments)

function visitNode(node: Node | null, schema: unknown, comments: Comments): void {
  const inner = unwrap(schema ?? {})
  if (isSeq(node)) for (const item of node.items) visitNode(item as Node, inner.item, comments)
  if (!isMap(node) || !inner.entries) return
  const map = node as YAMLMap
  for (const pair of map.items) {
    const entry = inner.entries[keyOf(pair)]
    const { description } = aboutOf(entry)
    const value = pair.value as Node
    if (comments.docs && description) {
      if (isScalar(value) && !String(value.value).includes('\n')) value.comment = ` ${description}`
      else (pair.key as Node).commentBefore = ` ${description}`
    }
    visitNode(value, entry, comments)
  }
  if (!comments.examples) return
  const present = new Set(map.items.map(keyOf))
  const blocks = Object.entries(inner.entries).flatMap(([key, entry]) => {
    const { description, example } = aboutOf(entry)
    if (example === undefined || present.has(key)) return []
    const lines = toYaml({ [key]: example }).trimEnd()
    return [comments.docs && description ? `# ${description}\n${lines}` : lines]
  })
  if (blocks.length) map.comment = blocks.join('\n\n').replace(/^(?=.)/gm, ' ')
}

function aboutOf(schema: unknown): { description?: string | undefined; example?: unknown } {
  const about: { description?: string | undefined; example?: unknown } = {}
  for (const step of pipeOf(schema)) {
    if (step.type === 'description') about.description = step.description
    if (step.metadata && 'example' in step.metadata) about.example = step.metadata.example
  }
  return about
}
