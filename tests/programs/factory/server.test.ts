import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultSchematic, longestSchematic } from '../../../src/programs/factory/schematic.ts'
import { Schematics } from '../../../src/programs/factory/schematics.ts'
import { newFolder, served, writeRelease } from './served.ts'

const args = 'customization:\n    extraKernelArgs:\n        - noapic\n        - nolapic\n'
const argsId = '9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c'

test('a schematic is kept under its id', async () => {
  await using factory = served(newFolder())
  const posted = await factory.ask('/schematics', { method: 'POST', body: '{"customization":{"extraKernelArgs":["noapic","nolapic"]}}' })
  expect([posted.status, await posted.json()]).toEqual([201, { id: argsId, schematic: args }])
  const read = await factory.ask(`/schematics/${argsId}`)
  expect([read.status, read.headers.get('content-type'), await read.text()]).toEqual([200, 'application/yaml', args])
  expect(await (await factory.ask(`/schematics/${defaultSchematic.id}`)).text()).toBe('customization: {}\n')
})

test('a folder keeps schematics for the next start, and a damaged one is ignored', () => {
  const folder = join(newFolder(), 'schematics')
  const first = new Schematics(folder)
  const schematic = { ...defaultSchematic, id: argsId, yaml: args }
  first.add(schematic)
  first.add(schematic)
  writeFileSync(join(folder, 'f'.repeat(64)), '{}')
  const second = new Schematics(folder)
  expect(second.get(argsId).customization.extraKernelArgs).toEqual(['noapic', 'nolapic'])
  expect(() => second.get('f'.repeat(64))).toThrow('is not known here')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('schematics are bounded in all', () => {
  const schematics = new Schematics(undefined, 100)
  const of = (id: string) => ({ ...defaultSchematic, id, yaml: `owner: ${id.repeat(34)}\ncustomization: {}\n` })
  schematics.add(of('a'))
  expect(() => schematics.add(of('b'))).toThrow('have 60 bytes, at most 100 are kept')
})

test('versions are those of the folder, the oldest first', async () => {
  const folder = newFolder()
  await using factory = served(folder)
  expect(await (await factory.ask('/versions')).json()).toEqual([])
  writeRelease(folder, 'v1.13.100')
  writeRelease(join(folder, 'older'), 'v1.13.9')
  mkdirSync(join(folder, 'broken'))
  writeFileSync(join(folder, 'broken/ichor-amd64.manifest'), 'nonsense')
  expect(await (await factory.ask('/versions')).json()).toEqual(['v1.13.9', 'v1.13.100'])
  expect(await (await factory.ask('/version/v1.13.9/extensions/official')).json()).toEqual([])
  expect(await (await factory.ask('/version/1.13.9/overlays/official')).json()).toEqual([])
})

test.each<[string, string, RequestInit, number, string]>([
  [
    'an unknown schematic',
    `/schematics/${'0'.repeat(64)}`,
    {},
    404,
    `schematic "${'0'.repeat(64)}" is not known here: post it to /schematics`,
  ],
  ['an unknown version', '/version/v9.9.9/extensions/official', {}, 404, 'version "v9.9.9" is not held here, but none'],
  ['no version', '/version/latest/extensions/official', {}, 400, 'version "latest": must be one as in v1.13.1'],
  ['another page', '/ui/', {}, 404, '"/ui/" is not served here'],
  ['another method', '/versions', { method: 'DELETE' }, 405, 'DELETE is not possible here: use GET'],
  ['a list of schematics', '/schematics', {}, 405, 'GET is not possible here: use POST'],
  [
    'a text that YAML loses',
    '/schematics',
    { method: 'POST', body: 'owner: "\\na"' },
    400,
    'schematic: a text begins with an empty line or a key is "<<", which is another after it is written and read',
  ],
  ['an unknown key', '/schematics', { method: 'POST', body: 'a: 1' }, 400, 'schematic: line 1, column 1: a: unknown key "a"'],
])('%s is refused in one line', async (_, path, init, status, reason) => {
  await using factory = served(newFolder())
  const answer = await factory.ask(path, init)
  expect([answer.status, await answer.text()]).toEqual([status, `${reason}\n`])
})

test('a schematic that is too large is refused', async () => {
  await using factory = served(newFolder())
  const answer = await factory.ask('/schematics', { method: 'POST', body: 'x'.repeat(longestSchematic + 1) })
  expect(answer.status).toBe(413)
})

test('where there is a token, nothing but health is answered without it', async () => {
  await using factory = served(newFolder(), { token: 'a token of the test' })
  expect((await factory.ask('/healthz')).status).toBe(200)
  const bare = await factory.ask('/versions')
  expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, 'Bearer, Basic realm="image factory"'])
  expect((await factory.ask('/versions', { headers: { authorization: 'Bearer another' } })).status).toBe(401)
  expect((await factory.ask('/versions', { headers: { authorization: 'Bearer a token of the test' } })).status).toBe(200)
  const basic = (password: string) => ({ headers: { authorization: `Basic ${Buffer.from(`machine:${password}`).toString('base64')}` } })
  expect((await factory.ask('/v2/', basic('a token of the test'))).status).toBe(200)
  expect((await factory.ask('/v2/', basic('another'))).status).toBe(401)
})
