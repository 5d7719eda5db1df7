/** What the field's own generator makes is read here, is valid, and survives a patch with its comments. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { buildClient, runClient } from './client.ts'

setDefaultTimeout(300_000)

const folder = mkdtempSync(join(tmpdir(), 'ichor-field-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('configurations of the field load, are valid in every mode, and keep every comment in its place', async () => {
  const files = (await runClient(await buildClient(), ['config', folder, '1.36.3'])) as string[]
  expect(files.map((file) => basename(file)).sort()).toEqual([
    'controlplane-explained.yaml',
    'controlplane-plain.yaml',
    'worker-explained.yaml',
    'worker-plain.yaml',
  ])
  for (const file of files) {
    const text = await Bun.file(file).text()
    const config = ConfigContainer.parse(text)
    for (const mode of ['metal', 'cloud', 'container'] as const) expect(config.validate(mode)).toEqual({ errors: [], warnings: [] })
    expect(config.toString()).toBe(text)
    expect(config.documents.map(({ label }) => label)).toEqual(['v1alpha1', 'HostnameConfig'])
    const patched = config.patch('machine: {sysctls: {a: b}}').toString()
    const comments = (yaml: string) => yaml.split('\n').filter((line) => /^\s*#/.test(line))
    expect(comments(patched)).toEqual(comments(text))
    const back = ConfigContainer.parse(patched).patch('machine: {sysctls: {$patch: delete}}')
    expect(config.difference(back)).toBe('')
  }
})
