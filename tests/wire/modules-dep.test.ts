import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { ModuleOrderError, moduleName, moduleOrder, parseModulesDep } from '../../src/wire/modules-dep.ts'

const text = `kernel/drivers/block/loop.ko:
kernel/fs/overlayfs/overlay.ko:
kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/net/core/failover.ko:
kernel/fs/nls/nls-utf8.ko.xz:
`

test('a module is named after its file, with underscores', () => {
  expect(['kernel/fs/nls/nls-utf8.ko.xz', 'loop.ko', 'a/dm_mod.ko.zst'].map(moduleName)).toEqual(['nls_utf8', 'loop', 'dm_mod'])
})

describe('order', () => {
  const dependencies = parseModulesDep(text)

  test('each module follows all its dependencies, once', () => {
    expect(moduleOrder(dependencies, ['loop', 'virtio-net', 'failover', 'nls-utf8'])).toEqual([
      'kernel/drivers/block/loop.ko',
      'kernel/net/core/failover.ko',
      'kernel/drivers/net/net_failover.ko',
      'kernel/drivers/net/virtio_net.ko',
      'kernel/fs/nls/nls-utf8.ko.xz',
    ])
  })

  test('a missing module is named', () => {
    expect(() => moduleOrder(dependencies, ['zfs'])).toThrow(new ModuleOrderError('module "zfs" is not in modules.dep'))
    expect(() => moduleOrder(parseModulesDep('a.ko: b.ko\n'), ['a'])).toThrow(/module "b\.ko", needed by "a\.ko"/)
  })

  test('a cycle is reported', () => {
    expect(() => moduleOrder(parseModulesDep('a.ko: b.ko\nb.ko: a.ko\n'), ['a'])).toThrow(/circle: a\.ko → b\.ko → a\.ko/)
  })

  test('in any graph no module precedes its dependencies', () => {
    const graph = fc.array(fc.array(fc.nat({ max: 29 }), { maxLength: 4 }), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(graph, (needs) => {
        // Only earlier ones are needed, so there is no circle.
        const lines = needs.map(
          (list, at) =>
            `m${at}.ko: ${list
              .filter((each) => each < at)
              .map((each) => `m${each}.ko`)
              .join(' ')}\n`,
        )
        const all = parseModulesDep(lines.join(''))
        const order = moduleOrder(all, needs.map((_, at) => `m${at}`).reverse())
        expect(order.length).toBe(needs.length)
        for (const [at, path] of order.entries()) for (const need of all.get(path)!) expect(order.indexOf(need)).toBeLessThan(at)
      }),
    )
  })
})

test('a malformed modules.dep is refused', () => {
  for (const wrong of ['loop.ko', ': a.ko', 'a b.ko: c.ko']) expect(() => parseModulesDep(wrong)).toThrow(DecodeError)
})
