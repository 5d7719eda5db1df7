import { base64, described, listOf, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Most keys: each is tried for every call. */
const mostKeys = 8

/** Keys with which control planes seal keys of disks for the workers of their cluster. */
export const SiblingKeysConfig = defineDocument({
  kind: 'SiblingKeysConfig',
  description: 'Keys with which a control plane seals keys of disks for workers. All control planes of a cluster have the same.',
  schema: section({
    keys: described(listOf(base64), 'Up to 8 keys, base64 of 32 bytes. The first one seals, all unseal.'),
  }),
  rules({ keys = [] }, report) {
    if (keys.length === 0) report.error(['keys'], 'a key is required: base64 of 32 random bytes, as of "openssl rand -base64 32"')
    if (keys.length > mostKeys) report.error(['keys'], `more than ${mostKeys} keys: ${keys.length}`)
    for (const [index, key] of keys.entries()) {
      const { length } = Buffer.from(key, 'base64')
      if (length !== 32) report.error(['keys', index], `expected base64 of 32 bytes, got ${length} bytes`)
    }
  },
})
