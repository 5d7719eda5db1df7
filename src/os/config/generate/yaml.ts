import { Document, isScalar, Scalar, visit } from 'yaml'

/** Plain values as portable YAML: indented by two spaces, long texts unbroken, several lines as a block. */
export function toYaml(value: unknown, decorate?: (document: Document) => void): string {
  // the 1.1 schema quotes all that any reader could take for a number, a boolean or a date
  const document = new Document(value, { schema: 'yaml-1.1', version: '1.1', aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === 'string' && node.value.includes('\n')) node.type = Scalar.BLOCK_LITERAL
    },
  })
  decorate?.(document)
  return document.toString({ lineWidth: 0, directives: false, defaultStringType: 'PLAIN' })
}
