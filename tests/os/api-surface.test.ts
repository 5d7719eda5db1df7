/** Every method of the machine API: served with the roles of the contract, or named below with the reason why it is not. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import type { Mode } from '../../src/os/kernel.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import { admits, type Method } from '../../src/rpc/server/method.ts'
import type { Role } from '../../src/wire/x509/roles.ts'
import { servedMethods } from './served-methods.ts'

const table = (await Bun.file(`${import.meta.dir}/../proto/contract/api-services.tsv`).text())
  .split('\n')
  .slice(1)
  .filter(Boolean)
  .map((line) => {
    const [pkg, service, method, clientStreams, serverStreams, , , roles = '', , , servedBy] = line.split('\t')
    const kind = { '00': 'unary', '01': 'server', '10': 'client', '11': 'bidi' }[`${clientStreams}${serverStreams}`]
    return { path: `${pkg}.${service}/${method}`, kind, roles: roles.split(',').sort(), servedBy }
  })

/** Methods that no node serves yet. */
const absent: Record<string, string> = {}

/** Methods that only a container node answers, by refusing them: machines learn them with disks and images. */
const refusedInContainers = new Set([
  'machine.LifecycleService/Install',
  'machine.LifecycleService/Upgrade',
  'machine.MachineService/MetaDelete',
  'machine.MachineService/MetaWrite',
  'machine.MachineService/Rollback',
  'machine.MachineService/Upgrade',
  'storage.StorageService/BlockDeviceWipe',
])

/** What init serves in a mode, each method once. */
function served(mode: Mode): Map<string, Method> {
  const methods = servedMethods(mode)
  expect(methods.map(({ path }) => path).toSorted()).toEqual([...new Set(methods.map(({ path }) => path))].toSorted())
  return new Map(methods.map((method) => [method.path, method]))
}

/** The roles that open a method at some time. */
function everRolesOf(access: Method['access']): string[] {
  if (access === 'anyone') return ['anyone']
  return 'roles' in access ? [...access.roles, ...access.inMaintenance] : [...access]
}

const inContainer = served('container')
const onMetal = served('metal')
const machined = table.filter(({ servedBy }) => servedBy === 'machined')

describe('the machine API', () => {
  test('has no method beside those of the contract but in a package of our own, and none is for everybody', () => {
    const known = new Set(table.map(({ path }) => path))
    const more = [...inContainer.values(), ...onMetal.values()].filter(({ path }) => !known.has(path))
    expect(more.map(({ path }) => path).filter((path) => !path.startsWith('ichor.v1.'))).toEqual([])
    expect(more.filter(({ access }) => access === 'anyone' || everRolesOf(access).length === 0)).toEqual([])
  })

  test('serves every method of the contract but those named here, in containers and on machines', () => {
    const missing = (methods: Map<string, Method>) => machined.map(({ path }) => path).filter((path) => !methods.has(path))
    expect(missing(inContainer).toSorted()).toEqual(Object.keys(absent).toSorted())
    expect(missing(onMetal).toSorted()).toEqual(Object.keys(absent).toSorted())
  })

  test.each(machined.filter(({ path }) => inContainer.has(path)))(
    '$path is for the roles of the contract, and streams as declared there',
    ({ path, kind, roles }) => {
      const method = inContainer.get(path)!
      expect(everRolesOf(method.access).sort()).toEqual(roles)
      expect(method.kind as string).toBe(kind!)
      expect(onMetal.get(path)?.access ?? method.access).toEqual(method.access)
    },
  )

  const changing = [...inContainer.values(), ...onMetal.values()].filter(({ path }) => !methodShape(path).readOnly)
  test.each(changing)('$path changes the machine, and is not for readers once it has a configuration', ({ access }) => {
    const may = (roles: readonly Role[]) => admits(access, new Set(roles), () => false)
    expect(may(['os:reader', 'os:image:verifier', 'os:etcd:backup', 'os:impersonator'])).toBe(false)
    expect(may(['os:admin'])).toBe(true)
  })

  test.each(machined)('$path is known by name', ({ path }) => {
    expect(methodShape(path as Parameters<typeof methodShape>[0]).request).toBeDefined()
  })

  test.each([...refusedInContainers])('%s is refused by a container node in one line', async (path) => {
    const { handle, kind } = inContainer.get(path)!
    const call = async () => {
      const answer = handle({ devices: [] } as never, {} as never)
      if (kind === 'server') for await (const _ of answer as AsyncIterable<unknown>) break
      await answer
    }
    await expect(call()).rejects.toMatchObject({
      status: 'FailedPrecondition',
      message: expect.stringMatching(/^[^\n]*: method is not supported in container mode: [^\n]*$/),
    })
  })
})

test('the roles of readers and operators are listed once', () => {
  const source = join(import.meta.dir, '../../src')
  const listing = [...new Glob('**/*.ts').scanSync(source)].filter((path) =>
    /'os:admin',\s*'os:operator'/.test(readFileSync(join(source, path), 'utf8')),
  )
  // Certificates and the configuration name all roles, of which these are two.
  expect(listing.sort()).toEqual(['rpc/server/method.ts', 'wire/x509/roles.ts'])
})
