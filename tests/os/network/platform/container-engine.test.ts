import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { applyPlatformConfig } from '../../../../src/os/network/controllers/platform.ts'
import { engineSettings } from '../../../../src/os/network/platform/container-engine.ts'
import { ResolverSpec } from '../../../../src/os/network/resources/resolver.ts'
import { PlatformMetadata } from '../../../../src/os/runtime/resources/platform-metadata.ts'

const settings = (resolvConf: string | undefined, environment = {}) =>
  engineSettings({ uts: { gethostname: () => 'demo-worker-1' }, files: { readTextIfThere: () => resolvConf } } as never, environment)

test('name servers and search domains are those of the engine', async () => {
  const given = settings('# Docker\nnameserver 127.0.0.11\nnameserver\tfd00::53 # two\nsearch corp.test lab.test\noptions ndots:0\n', {
    TALOSSKU: '2CPU-2048RAM',
  })
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(applyPlatformConfig('container', given))
  os.start()
  await os.settled()
  const [resolvers] = store.list(ResolverSpec, { namespace: 'network-config' })
  expect(resolvers?.spec).toEqual({ dnsServers: ['127.0.0.11', 'fd00::53'], searchDomains: ['corp.test', 'lab.test'], layer: 'platform' })
  expect(store.get(PlatformMetadata, 'platformmetadata')?.spec).toEqual({
    platform: 'container',
    hostname: 'demo-worker-1',
    instanceType: '2CPU-2048RAM',
  })
})

test('a node that no engine gave name servers has none from there', () => {
  expect(settings('')).toEqual({ hostname: 'demo-worker-1', nameservers: [], searchDomains: [] })
  expect(settings(undefined).nameservers).toEqual([])
})
