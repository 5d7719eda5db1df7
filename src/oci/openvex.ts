/** Statements on whether flaws concern something, as an OpenVEX 0.2.0 document (github.com/openvex/spec). */
import * as v from 'valibot'
import { parsePackageUrl } from './package-url.ts'

/** The context of every document of this version. */
export const vexContext = 'https://openvex.dev/ns/v0.2.0'

/** A document with faults, one line each. */
export class VexError extends Error {
  override name = 'VexError'
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'))
  }
}

const statuses = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const
const justifications = [
  'component_not_present',
  'vulnerable_code_not_present',
  'vulnerable_code_not_in_execute_path',
  'vulnerable_code_cannot_be_controlled_by_adversary',
  'inline_mitigations_already_exist',
] as const

const longestText = 10_000
const filled = (what: string) =>
  v.pipe(v.string(`must be ${what}`), v.nonEmpty(`must be ${what}`), v.maxLength(longestText, `has more than ${longestText} characters`))
const text = filled('a text')
const iri = v.pipe(text, v.regex(/^[A-Za-z][A-Za-z0-9+.-]*:\S+$/, 'must be an identifier with a scheme, as in https://example.org/vex/1'))
const moment = v.pipe(
  text,
  v.check(
    (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.test(value) && !Number.isNaN(Date.parse(value)),
    'must be a time as in 2026-11-28T12:00:00Z',
  ),
)
const counter = v.pipe(
  v.number('must be a number from 1 on'),
  v.integer('must be a whole number'),
  v.minValue(1, 'must be a number from 1 on'),
)
const oneOf = <const T extends readonly string[]>(values: T) => v.picklist(values, `must be one of ${values.join(', ')}`)

const identified = {
  '@id': v.exactOptional(iri),
  identifiers: v.exactOptional(v.record(oneOf(['purl', 'cpe22', 'cpe23', '@cpe22', '@cpe23']), text, 'must be a mapping')),
  hashes: v.exactOptional(v.record(v.pipe(v.string(), v.regex(/^[a-z0-9-]{3,16}$/, 'is no name of a hash')), text, 'must be a mapping')),
}
const Component = v.strictObject(identified)
const Product = v.strictObject({ ...identified, subcomponents: v.exactOptional(v.array(Component, 'must be a list')) })

const Statement = v.strictObject({
  '@id': v.exactOptional(iri),
  version: v.exactOptional(counter),
  vulnerability: v.strictObject(
    {
      '@id': v.exactOptional(iri),
      name: filled('the name of a flaw, as in CVE-2022-0563'),
      description: v.exactOptional(text),
      aliases: v.exactOptional(v.array(text, 'must be a list')),
    },
    'must be a mapping with "name"',
  ),
  timestamp: v.exactOptional(moment),
  last_updated: v.exactOptional(moment),
  products: v.pipe(
    v.array(Product, 'must be a list of what the statement is about'),
    v.minLength(1, 'must be a list of what the statement is about'),
  ),
  status: oneOf(statuses),
  supplier: v.exactOptional(text),
  status_notes: v.exactOptional(text),
  justification: v.exactOptional(oneOf(justifications)),
  impact_statement: v.exactOptional(text),
  action_statement: v.exactOptional(text),
  action_statement_timestamp: v.exactOptional(moment),
})

const mostStatements = 10_000

const Document = v.strictObject(
  {
    '@context': v.literal(vexContext, `must be "${vexContext}"`),
    '@id': iri,
    author: filled('the name of who makes the statements'),
    role: v.exactOptional(text),
    timestamp: moment,
    last_updated: v.exactOptional(moment),
    version: counter,
    tooling: v.exactOptional(text),
    statements: v.pipe(
      v.array(Statement, 'must be a list of statements'),
      v.minLength(1, 'must have at least one statement'),
      v.maxLength(mostStatements, `must have at most ${mostStatements} statements`),
    ),
  },
  'must be a mapping with "@context", "@id", "author", "timestamp", "version" and "statements"',
)

export type VexDocument = v.InferOutput<typeof Document>
export type VexStatement = v.InferOutput<typeof Statement>
export type VexProduct = v.InferOutput<typeof Product>

/** Faults that are named at most. */
const mostFaults = 50

/** Reads a document. Throws VexError with a line for each fault. */
export function parseVex(json: string): VexDocument {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw new VexError(['not a JSON document: give the OpenVEX document whole, as it was downloaded'])
  }
  const { success, output, issues } = v.safeParse(Document, value)
  const faults = success
    ? output.statements.flatMap((each, index) => faultsOf(each).map((fault) => `statements.${index}.${fault}`))
    : issues.map(faultOf)
  if (!success || faults.length > 0) throw new VexError(faults.slice(0, mostFaults))
  return output
}

function faultOf(issue: v.BaseIssue<unknown>): string {
  const where = v.getDotPath(issue) ?? 'the document'
  if (issue.type !== 'strict_object') return `${where} ${issue.received === 'undefined' ? `is missing: ${issue.message}` : issue.message}`
  if (issue.expected === 'never') return `${where} is not known in OpenVEX 0.2.0: remove it, or correct its name`
  return issue.received === 'undefined' ? `${where} is missing` : `${where} ${issue.message}`
}

/** What the fields of a statement must be with its status, and what it is about. */
function faultsOf({ status, products, justification, impact_statement, action_statement }: VexStatement): string[] {
  const faults: string[] = []
  if (status === 'not_affected') {
    if (justification === undefined && impact_statement === undefined)
      faults.push('justification is missing: "not_affected" needs it or "impact_statement"')
    if (action_statement !== undefined) faults.push('action_statement goes with "affected" only')
  } else {
    if (justification !== undefined) faults.push('justification goes with "not_affected" only')
    if (impact_statement !== undefined) faults.push('impact_statement goes with "not_affected" only')
    if (status === 'affected' && action_statement === undefined)
      faults.push('action_statement is missing: "affected" needs what can be done about it')
    if (status !== 'affected' && action_statement !== undefined) faults.push('action_statement goes with "affected" only')
  }
  for (const [index, product] of products.entries())
    if (packagesOf(product).length === 0)
      faults.push(`products.${index} names no package: give it or its subcomponents an "@id" as in pkg:deb/debian/udev`)
  return faults
}

/** The package URLs of what a product stands for: its subcomponents, where it has some. */
export function packagesOf(product: VexProduct): string[] {
  const { subcomponents = [] } = product
  const named = subcomponents.length > 0 ? subcomponents : [product]
  return named.flatMap(({ '@id': id = '', identifiers }) =>
    [identifiers?.purl ?? '', id].filter((each) => parsePackageUrl(each) !== undefined).slice(0, 1),
  )
}

/** The time of a statement, which is that of its document when it has none of its own. */
export const timeOf = ({ timestamp }: Pick<VexDocument, 'timestamp'>, statement: Pick<VexStatement, 'timestamp'>): string =>
  statement.timestamp ?? timestamp
