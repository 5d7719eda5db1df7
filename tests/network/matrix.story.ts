import { afterEach, beforeEach, describe, test } from 'bun:test'
import { dnsmasq } from './lab/dnsmasq.ts'
import { Lab } from './lab/lab.ts'
import { goThrough, type LinkKind, linkKinds, offered, ways } from './lab/matrix.ts'

const scratch = new Lab()
const kinds = linkKinds.filter((kind) => {
  const there = offered(scratch, kind)
  if (!there) console.log(`this kernel makes no ${kind}: that part is skipped`)
  return there
})
await scratch.close()
if (!dnsmasq) console.log('skipped: needs dnsmasq: bun tests/network/prepare.ts installs it')

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(() => lab.close())

describe.skipIf(!dnsmasq).each(kinds.map((kind) => [kind] as [LinkKind]))('an address on a link that is %s', (kind) => {
  test.each(ways.map(({ family, ways: chosen }) => [`${family}: ${chosen.join(' and ')}`, chosen] as const))(
    '%s',
    (_, chosen) => goThrough(lab, kind, chosen),
    900_000,
  )
})
