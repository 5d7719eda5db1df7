/** Distinguished names (RFC 5280 §4.1.2.4), with the two attributes that are used here. */
import { type DerReader, oid, sequence, setOf, tags, text } from '../der.ts'

/** The subject of a certificate. */
export interface Name {
  commonName?: string | undefined
  /** Roles or groups; each is one attribute. */
  organizations?: string[]
}

const commonName = '2.5.4.3'
const organization = '2.5.4.10'

const attribute = (type: string, value: string) => sequence(oid(type), text(value))

/** Encodes a name: organizations first, then the common name. */
export function encodeName(name: Name): Uint8Array {
  const parts: Uint8Array[] = []
  if (name.organizations?.length) parts.push(setOf(...name.organizations.map((value) => attribute(organization, value))))
  if (name.commonName) parts.push(setOf(attribute(commonName, name.commonName)))
  return sequence(...parts)
}

/** Decodes a name; attributes of other types are skipped. */
export function decodeName(reader: DerReader): Name {
  const organizations: string[] = []
  let common: string | undefined
  while (!reader.done) {
    const set = reader.enter(tags.set)
    while (!set.done) {
      const pair = set.enter()
      const type = pair.oid()
      if (type === commonName) common = pair.text()
      else if (type === organization) organizations.push(pair.text())
    }
  }
  return { ...(common !== undefined && { commonName: common }), ...(organizations.length && { organizations }) }
}
