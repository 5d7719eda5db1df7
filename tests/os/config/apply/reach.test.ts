import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'
import { riskOf } from '../../../../src/os/config/apply/reach.ts'

const documents = join(import.meta.dir, '../../../../src/os/network/documents')

/** Documents of the network that cannot make the machine unreachable. */
const harmless = [
  'HostnameConfig', // names of the machine
  'ResolverConfig', // clients have its address
  'StaticHostConfig',
  'TCPProbeConfig', // only observes
]

test('a change of any document of the network puts the connectivity at risk, unless it is known to be harmless', async () => {
  const kinds: string[] = []
  for (const path of new Glob('*.ts').scanSync(documents))
    for (const value of Object.values(await import(join(documents, path))))
      if (typeof value === 'object' && value !== null && 'kind' in value && 'schema' in value) kinds.push(String(value.kind))
  expect(kinds).toContain('LinkConfig')
  const without = kinds.filter((kind) => !riskOf([{ document: kind, kind, path: ['name'] }]))
  expect(without.sort()).toEqual(harmless)
})
