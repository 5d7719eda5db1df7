import { expect, test } from 'bun:test'
import { describe, ResourceDefinition } from '../../src/cosi/meta.ts'
import { Store } from '../../src/cosi/store.ts'
import { resources as block } from '../../src/os/block/resource-types.ts'
import { resources as runtime } from '../../src/os/runtime/resource-types.ts'

test('a kind is found by its plural, its declared names, its singular and its initials', () => {
  const store = new Store()
  describe(store, [...block, ...runtime], { meta: 'itself' })
  expect(store.get(ResourceDefinition, 'blockdevices.block.talos.dev')?.spec.allAliases).toEqual([
    'blockdevices',
    'blockdevices.block',
    'blockdevices.block.talos',
    'blockdevice',
    'bd',
    'bds',
  ])
  expect(store.get(ResourceDefinition, 'swapstatuses.block.talos.dev')?.spec.allAliases).toEqual([
    'swapstatuses',
    'swapstatuses.block',
    'swapstatuses.block.talos',
    'swap',
    'swaps',
    'swapstatus',
    'ss',
  ])
  expect(store.get(ResourceDefinition, 'mountstatuses.runtime.talos.dev')?.spec.allAliases).toEqual(['mounts'])
})
