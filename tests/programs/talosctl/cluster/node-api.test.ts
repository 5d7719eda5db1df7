import { expect, test } from 'bun:test'
import { firstFile } from '../../../../src/programs/talosctl/cluster/node-api.ts'

const archive = async (files: Record<string, string>) => new Uint8Array(await new Bun.Archive(files).bytes())

test('the first file of an archive comes out whole', async () => {
  const text = 'x'.repeat(1500)
  expect(firstFile(await archive({ kubeconfig: text, other: 'y' }))).toBe(text)
})

test('an archive cut short, or empty, is refused', async () => {
  const whole = await archive({ kubeconfig: 'x'.repeat(1500) })
  expect(() => firstFile(whole.subarray(0, 1024))).toThrow('the archive is cut short')
  expect(() => firstFile(new Uint8Array(1024))).toThrow('the archive holds no file')
  expect(() => firstFile(new Uint8Array())).toThrow('the archive holds no file')
})
