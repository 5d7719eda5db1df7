/** Writes documents as YAML in the style of their source. */
import type { YamlDocument } from './stream.ts'

/** Writes documents after a change: keeps the indentation of the source, comments and order. */
export function writeStream(documents: readonly YamlDocument[], like = ''): string {
  const indent = Math.min(8, Math.max(1, /^( +)\S/m.exec(like)?.[1]?.length ?? 2))
  const indentSeq = !/^( *)[^\s#-][^\n]*:[ \t]*\n\1- /m.test(like)
  return documents
    .map((document) => document.toString({ indent, indentSeq, lineWidth: 0, directives: false, flowCollectionPadding: false }))
    .join('---\n')
}
