import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTpm } from '../../src/linux/device/tpm.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-tpm-device-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A pipe in place of the device: what is written is read again. */
function pipe(name: string): string {
  const path = join(folder, name)
  expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0)
  return path
}

test('a machine without a TPM has none', async () => {
  expect(await openTpm(join(folder, 'missing'))).toBeUndefined()
})

test('a command is written at once and its response read', async () => {
  const tpm = await openTpm(pipe('answering'))
  expect(await tpm?.transmit(Buffer.from('a command'))).toEqual(new Uint8Array(Buffer.from('a command')))
  await tpm?.close()
})

test('a TPM that does not answer in time is given up, and closed once the call returns', async () => {
  const path = pipe('silent')
  const tpm = await openTpm(path, 50)
  await expect(tpm?.transmit(new Uint8Array())).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  await expect(tpm?.close()).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  writeFileSync(path, 'late')
  await tpm?.close()
})
