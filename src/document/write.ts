/** Documents → text, in the manner of the text they came from. */
import type { YamlDocument } from './stream.ts'

/** Writes documents after a change: indentation like the original's, comments and order kept. */
export function writeStream(documents: readonly YamlDocument[], like = ''): string {
  const indent = Math.min(8, Math.max(1, /^( +)\S/m.exec(like)?.[1]?.length ?? 2))
  const indentSeq = !/^( *)[^\s#-][^\n]*:[ \t]*\n\1- /m.test(like)
  return documents
    .map((document) => document.toString({ indent, indentSeq, lineWidth: 0, directives: false, flowCollectionPadding: false }))
    .join('---\n')
}
