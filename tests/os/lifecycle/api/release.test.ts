import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import type { Machine } from '../../../../src/os/area.ts'
import { SystemDisk } from '../../../../src/os/block/resources/system-disk.ts'
import { releaseMethods } from '../../../../src/os/lifecycle/api/release.ts'
import { admits } from '../../../../src/rpc/server/method.ts'
import type { Role } from '../../../../src/wire/x509/roles.ts'

/** A machine booted from a medium without a release; any other request fails the test. */
function machine({ installed }: { installed: boolean }): Machine {
  const store = new Store()
  if (installed) store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
  const parts = {
    store,
    log: silent,
    kernel: { files: { exists: () => false } },
    version: { name: 'Ichor', tag: 'v1.13.100', sha: '', built: '', arch: 'amd64' },
  }
  return parts as unknown as Machine
}

const context = (...roles: Role[]) => ({ roles: new Set(roles), signal: new AbortController().signal, log: silent, peer: '', metadata: {} })
const registry = 'registry.test/installer:v9.9.9'

async function answers(path: string, request: object, installed: boolean, ...roles: Role[]): Promise<unknown[]> {
  const method = releaseMethods(machine({ installed })).find((one) => one.path === path)!
  return Array.fromAsync(method.handle(request as never, context(...roles) as never) as AsyncIterable<unknown>)
}

const refusal = {
  status: 'PermissionDenied',
  message: expect.stringContaining('in maintenance mode images are not pulled for callers without a certificate'),
}

test.each([
  ['ichor.v1.ReleaseService/Upgrade', { imageName: registry }, true],
  ['ichor.v1.ReleaseService/Upgrade', { imageName: 'registry.test/installer:v1.13.100' }, true],
  ['ichor.v1.ReleaseService/Plan', { imageName: registry }, true],
  ['ichor.v1.ReleaseService/Install', { imageName: registry }, false],
  // The tag of this system is no proof that the medium carries it.
  ['ichor.v1.ReleaseService/Install', { imageName: 'registry.test/installer:v1.13.100' }, false],
  ['machine.LifecycleService/Upgrade', { source: { imageName: registry } }, true],
  ['machine.LifecycleService/Install', { source: { imageName: registry }, destination: { disk: '/dev/vda' } }, false],
])('%s pulls nothing from a registry for callers without a certificate', async (path, request, installed) => {
  await expect(answers(path, request, installed, 'os:reader')).rejects.toMatchObject(refusal)
})

test.each([
  ['ichor.v1.ReleaseService/Install', { imageName: registry }],
  ['machine.LifecycleService/Install', { source: { imageName: registry }, destination: { disk: '/dev/vda' } }],
  ['machine.LifecycleService/Install', {}],
])('%s of an installed machine ends with the code at which managers upgrade it', async (path, request) => {
  await expect(answers(path, request, true, 'os:admin')).rejects.toMatchObject({
    status: 'AlreadyExists',
    message: 'install: this machine is already installed, upgrade it instead',
  })
})

test.each([
  ['ichor.v1.ReleaseService/Upgrade', { imageName: registry }],
  ['machine.LifecycleService/Upgrade', { source: { imageName: registry } }],
  ['machine.LifecycleService/Upgrade', {}],
])('%s of a machine that is not installed pulls nothing', async (path, request) => {
  await expect(answers(path, request, false, 'os:admin')).rejects.toMatchObject({
    status: 'FailedPrecondition',
    message: expect.stringContaining('not installed, install it first'),
  })
})

test('an installation plan lists why it would be refused', async () => {
  expect(await answers('ichor.v1.ReleaseService/Plan', { imageName: registry, install: true }, false, 'os:reader')).toMatchObject([
    { items: [{ subject: 'install', verdict: expect.anything(), text: refusal.message }] },
  ])
})

test("a caller that may upgrade only in maintenance through our API may not through the field's", () => {
  const anonymous = new Set<Role>(['os:reader'])
  const open = (maintenance: boolean) =>
    releaseMethods(machine({ installed: false }))
      .filter(({ access }) => admits(access, anonymous, () => maintenance))
      .map(({ path }) => path)
  expect(open(false)).toEqual([])
  expect(open(true)).toEqual(['Send', 'Plan', 'Upgrade', 'Install'].map((name) => `ichor.v1.ReleaseService/${name}` as never))
})
