import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { grubConfig, parseSlotConfig, slotConfig } from '../../../../src/os/lifecycle/slots/grub-config.ts'
import { environmentSize, formatEnvironment, parseEnvironment } from '../../../../src/os/lifecycle/slots/grub-environment.ts'

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-grub-'))
  try {
    return work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const content = { version: 'v1.13.0', rootHash: 'cd'.repeat(32), image: '0123456789abcdef' }

test('variables round-trip, all within the first sector', () => {
  const variables = new Map([
    ['good', 'a'],
    ['next', 'b'],
    ['tries', '3'],
  ])
  const block = formatEnvironment(variables)
  expect(block.length).toBe(environmentSize)
  expect(parseEnvironment(block)).toEqual(variables)
  expect(Buffer.from(block.subarray(512)).toString()).toBe('#'.repeat(512))
  expect(() => formatEnvironment(new Map([['good', 'a\nnext=b']]))).toThrow('an invalid value')
  expect(() => formatEnvironment(new Map([['good', 'a'.repeat(600)]]))).toThrow('one sector')
})

test('foreign content is not taken for a block', () => {
  expect(parseEnvironment(new Uint8Array(1024))).toBeUndefined()
  expect(parseEnvironment(Buffer.from('# GRUB Environment Block\n'))).toBeUndefined()
})

test('blocks are compatible with grub-editenv', () => {
  const editor = Bun.which('grub-editenv')
  if (!editor) return
  inFolder((folder) => {
    const path = join(folder, 'grubenv')
    writeFileSync(path, formatEnvironment(new Map([['good', 'a']])))
    expect(Bun.spawnSync([editor, path, 'list']).stdout.toString()).toBe('good=a\n')
    Bun.spawnSync([editor, path, 'set', 'next=b', 'tries=2'])
    expect(Object.fromEntries(parseEnvironment(readFileSync(path)) ?? [])).toEqual({ good: 'a', next: 'b', tries: '2' })
  })
})

test('grub-script-check accepts the configuration', () => {
  const check = Bun.which('grub-script-check')
  if (!check) return
  inFolder((folder) => {
    for (const [name, text] of [
      ['grub.cfg', grubConfig()],
      ['slot.cfg', slotConfig('b', content, `console=ttyS0 talos.config=http://x/?a=b&c=$d it's "quoted"`)],
    ] as const) {
      writeFileSync(join(folder, name), text)
      const { exitCode, stderr } = Bun.spawnSync([check, join(folder, name)])
      expect([name, exitCode, stderr.toString()]).toEqual([name, 0, ''])
    }
  })
})

test('the content of a slot is known once its file is complete', () => {
  const text = slotConfig('a', content, 'console=ttyS0')
  expect(parseSlotConfig(text)).toEqual(content)
  for (let length = 0; length < text.length; length++) expect(parseSlotConfig(text.slice(0, length))).toBeUndefined()
})
